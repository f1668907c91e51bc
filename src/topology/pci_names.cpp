#include "topology/pci_names.hpp"

extern "C" {
#include <pci/pci.h>
}

#include <array>
#include <memory>
#include <sstream>
#include <string>

namespace gdrbench::topology {
namespace {

struct FreeAccess {
  void operator()(pci_access* access) const noexcept { pci_cleanup(access); }
};

void say_nothing(char*, ...) {}

// Never initialised beyond this: pci_init() looks for a way to the buses, and ends the process without one.
// It is also what sets these two, which looking names up calls.
std::unique_ptr<pci_access, FreeAccess> open_names() {
  std::unique_ptr<pci_access, FreeAccess> access(pci_alloc());
  access->warning = say_nothing;
  access->debug = say_nothing;
  // Where udev has no database, each look-up would leave a little memory behind.
  std::string key = "hwdb.disable", yes = "1";
  pci_set_param(access.get(), key.data(), yes.data());
  return access;
}

}  // namespace

std::string pci_model(std::uint16_t vendor, std::uint16_t device) {
  static const std::unique_ptr<pci_access, FreeAccess> access = open_names();
  std::array<char, 256> name{};
  const char* const found = pci_lookup_name(access.get(), name.data(), static_cast<int>(name.size()),
                                            PCI_LOOKUP_DEVICE | PCI_LOOKUP_NO_NUMBERS, vendor, device);
  return found == nullptr ? "" : found;
}

std::string driver_model(const Root& root, const std::string& address) {
  constexpr std::string_view key = "Model:";
  std::istringstream lines(root.read("proc/driver/nvidia/gpus/" + address + "/information").text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(" \t", key.size());
    const std::string name = begin == std::string::npos ? "" : line.substr(begin);
    return name == "Unknown" ? "" : name;  // of a GPU that it could not start
  }
  return "";
}

}  // namespace gdrbench::topology
