#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace gdrbench::machines {

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

}  // namespace gdrbench::machines
