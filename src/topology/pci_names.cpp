#include "topology/pci_names.hpp"

extern "C" {
#include <pci/pci.h>
}

#include <array>
#include <memory>

namespace gdrbench::topology {
namespace {

struct FreeAccess {
  void operator()(pci_access* access) const noexcept { pci_cleanup(access); }
};

}  // namespace

std::string pci_model(std::uint16_t vendor, std::uint16_t device) {
  // Never initialised beyond this: pci_init() looks for a way to the buses, and ends the process without one.
  static const std::unique_ptr<pci_access, FreeAccess> access(pci_alloc());
  std::array<char, 256> name{};
  const char* const found = pci_lookup_name(access.get(), name.data(), static_cast<int>(name.size()),
                                            PCI_LOOKUP_DEVICE | PCI_LOOKUP_NO_NUMBERS, vendor, device);
  return found == nullptr ? "" : found;
}

}  // namespace gdrbench::topology
