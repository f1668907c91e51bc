#include "machines/tree.hpp"

#include <fstream>

namespace gdrbench::machines {

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

}  // namespace gdrbench::machines
