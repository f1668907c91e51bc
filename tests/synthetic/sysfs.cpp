#include "synthetic/sysfs.hpp"

#include <fstream>

namespace gdrbench::synthetic {
namespace {

// Offsets and identifiers of the PCI Express Base Specification.
constexpr std::size_t pcie_capability = 0x40;
constexpr std::size_t first_extended_capability = 0x100;
constexpr std::uint16_t pcie_capability_id = 0x10;
constexpr std::uint32_t acs_capability_id = 0x000d, ats_capability_id = 0x000f;
constexpr std::size_t extended_capability_bytes = 0x10;  // more than either needs
constexpr std::uint16_t every_acs_control = 0x5f;

class Space {
 public:
  void put8(std::size_t at, unsigned value) { bytes_[at] = static_cast<char>(value); }
  void put16(std::size_t at, unsigned value) {
    put8(at, value & 0xff);
    put8(at + 1, value >> 8);
  }
  void put32(std::size_t at, std::uint32_t value) {
    put16(at, value & 0xffff);
    put16(at + 2, value >> 16);
  }
  std::string bytes() const { return bytes_; }

 private:
  std::string bytes_ = std::string(4096, '\0');
};

}  // namespace

std::string config_space(const PciConfig& config) {
  Space space;
  space.put16(0x00, config.vendor);
  space.put16(0x02, config.device);
  space.put16(0x06, 0x0010);  // status: has capabilities
  space.put32(0x08, config.class_code << 8);
  space.put8(0x0e, config.is_bridge ? 1 : 0);
  space.put8(0x34, pcie_capability);
  space.put8(pcie_capability, pcie_capability_id);
  space.put16(pcie_capability + 2, config.is_bridge ? 0x62 : 0x02);  // version 2; downstream port or endpoint
  space.put16(pcie_capability + 8, config.device_control);
  std::size_t at = first_extended_capability;
  const auto add = [&](std::uint32_t id, std::uint16_t capable, std::uint16_t control) {
    const std::size_t next = at + extended_capability_bytes;
    space.put32(at, static_cast<std::uint32_t>(next << 20) | 1u << 16 | id);
    space.put16(at + 4, capable);
    space.put16(at + 6, control);
    at = next;
  };
  if (config.acs_control) add(acs_capability_id, every_acs_control, *config.acs_control);
  if (config.ats_control) add(ats_capability_id, 0, *config.ats_control);
  return space.bytes();
}

namespace fs = std::filesystem;

void Tree::remove(const std::string& path) {
  std::erase_if(entries_, [&](const auto& entry) {
    return entry.first == path || entry.first.starts_with(path + "/");
  });
}

std::string Tree::text(const std::string& path) const {
  const auto found = entries_.find(path);
  std::string text = found == entries_.end() || found->second.kind != Kind::file ? "" : found->second.content;
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string Tree::target(const std::string& path) const {
  const auto found = entries_.find(path);
  return found == entries_.end() || found->second.kind != Kind::link ? "" : found->second.content;
}

void Tree::write(const fs::path& top) const {
  for (const auto& [path, entry] : entries_) {
    const fs::path place = top / path;
    fs::create_directories(entry.kind == Kind::folder ? place : place.parent_path());
    if (entry.kind == Kind::file) std::ofstream(place, std::ios::binary) << entry.content;
    if (entry.kind == Kind::link)
      fs::create_symlink(fs::path(entry.content).lexically_relative(fs::path(path).parent_path()), place);
  }
}

}  // namespace gdrbench::synthetic
