#include "topology/pci_function.hpp"

#include <array>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

// C headers without guards of their own for C++.
extern "C" {
#include <pci/pci.h>
}

namespace gdrbench::topology {
namespace {

constexpr std::size_t header_bytes = 64, conventional_bytes = 256, express_bytes = 4096;

struct CleanUp {
  void operator()(pci_access* access) const noexcept { pci_cleanup(access); }
};
struct Free {
  void operator()(pci_dev* function) const noexcept { pci_free_dev(function); }
};

// libpci ends the process if this returns. GNU's attribute, which is part of the type that libpci declares.
__attribute__((noreturn)) void refuse(char* /*format*/, ...) {
  throw std::runtime_error("libpci cannot read the PCI bus");
}
void ignore(char* /*format*/, ...) {}

std::unique_ptr<pci_access, CleanUp> open_access(const Root& root) {
  std::unique_ptr<pci_access, CleanUp> access(pci_alloc());
  access->error = refuse;
  access->warning = ignore;
  access->debug = ignore;
  access->method = PCI_ACCESS_SYS_BUS_PCI;
  std::string folder = (root.folder() / "sys/bus/pci").string();
  std::string name = "sysfs.path";
  pci_set_param(access.get(), name.data(), folder.data());
  pci_init(access.get());
  return access;
}

std::optional<PciConfig::Register> register_of(pci_dev* function, unsigned type, unsigned id, int offset) {
  const pci_cap* const capability = pci_find_cap(function, id, type);
  if (capability == nullptr) return std::nullopt;
  const int at = static_cast<int>(capability->addr) + offset;
  return PciConfig::Register{.offset = at, .value = pci_read_word(function, at)};
}

void read_registers(const Root& root, const std::string& address, PciConfig& config) {
  unsigned domain = 0, bus = 0, device = 0, number = 0;
  constexpr int fields = 4;
  if (std::sscanf(address.c_str(), "%x:%x:%x.%x", &domain, &bus, &device, &number) != fields) return;
  const auto access = open_access(root);
  const std::unique_ptr<pci_dev, Free> function(pci_get_dev(access.get(), static_cast<int>(domain),
                                                            static_cast<int>(bus), static_cast<int>(device),
                                                            static_cast<int>(number)));
  config.vendor = pci_read_word(function.get(), PCI_VENDOR_ID);
  config.device = pci_read_word(function.get(), PCI_DEVICE_ID);
  if (config.has_capabilities)
    config.device_control = register_of(function.get(), PCI_CAP_NORMAL, PCI_CAP_ID_EXP, PCI_EXP_DEVCTL);
  if (!config.has_extended_capabilities) return;
  config.access_control = register_of(function.get(), PCI_CAP_EXTENDED, PCI_EXT_CAP_ID_ACS, PCI_ACS_CTRL);
  config.address_translation =
      register_of(function.get(), PCI_CAP_EXTENDED, PCI_EXT_CAP_ID_ATS, PCI_ATS_CTRL);
}

}  // namespace

PciConfig read_pci_config(const Root& root, const std::string& address) {
  PciConfig config;
  // Beforehand, since libpci would wait for a pipe, and does not tell how much it was given.
  const FileText bytes = root.read("sys/bus/pci/devices/" + address + "/config", express_bytes);
  config.state = bytes.state;
  // A newline at the end is taken for the file's.
  const std::size_t size = bytes.text.size() + 1;
  if (size < header_bytes) return config;
  config.has_capabilities = size >= conventional_bytes;
  config.has_extended_capabilities = size >= express_bytes;
  try {
    read_registers(root, address, config);
  } catch (const std::exception&) {
    config.has_capabilities = config.has_extended_capabilities = false;
  }
  return config;
}

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
