#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

/// Files as sysfs, procfs and /dev would have them.
namespace gdrbench::synthetic {

/// A function's PCI configuration space.
struct PciConfig {
  std::uint16_t vendor = 0, device = 0;
  std::uint32_t class_code = 0;  ///< 24 bits
  bool is_bridge = false;
  std::optional<std::uint16_t> acs_control = std::nullopt;  ///< absent: no ACS capability
  std::uint16_t device_control = 0;                         ///< PCIe capability; bit 4: relaxed ordering
  std::optional<std::uint16_t> ats_control = std::nullopt;  ///< absent: no ATS capability
};

/// The 4096 bytes of sysfs's `config`, with a PCIe capability and, if asked for, one of ACS.
std::string config_space(const PciConfig& config);

/// Files and links as they will lie in a folder. Paths have no leading slash.
class Tree {
 public:
  /// A newline is added to the text, as the kernel does; see raw() for other files.
  void file(const std::string& path, const std::string& text) { raw(path, text + "\n"); }
  void raw(const std::string& path, std::string bytes) { entries_[path] = {Kind::file, std::move(bytes)}; }
  /// `target` is a path in the tree; the link is written relative, as in sysfs.
  void link(const std::string& path, std::string target) { entries_[path] = {Kind::link, std::move(target)}; }
  void folder(const std::string& path) { entries_[path] = {Kind::folder, ""}; }
  /// With all that lies below it.
  void remove(const std::string& path);
  /// What a file holds without its last newline, where a link points; empty for what is not there.
  std::string text(const std::string& path) const;
  std::string target(const std::string& path) const;
  bool contains(const std::string& path) const { return entries_.contains(path); }

  void write(const std::filesystem::path& top) const;

 private:
  enum class Kind { file, link, folder };
  struct Entry {
    Kind kind;
    std::string content;
  };
  std::map<std::string, Entry> entries_;
};

}  // namespace gdrbench::synthetic
