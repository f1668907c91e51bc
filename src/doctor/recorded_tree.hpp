#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace gdrbench::doctor {

/// Files, links and folders that stand for a machine. Paths are relative, without a leading slash; links hold
/// what the link says.
class RecordedTree {
 public:
  enum class Kind { file, link, folder };
  struct Entry {
    Kind kind = Kind::file;
    std::string content;
  };

  const std::map<std::string, Entry>& entries() const { return entries_; }
  std::map<std::string, Entry>& entries() { return entries_; }
  void add(const std::string& path, Kind kind, std::string content) {
    entries_[path] = {kind, std::move(content)};
  }

  /// Throws UsageError where write() would refuse the folder.
  static void require_free(const std::filesystem::path& folder);
  /// Throws UsageError for a folder in the one that is recorded.
  static void require_apart(const std::filesystem::path& folder, const std::filesystem::path& source);
  /// Into an empty folder, or one that it makes. Throws UsageError where the folder holds something or a link
  /// leads nowhere, SystemError with the path where writing fails; then nothing of it is left.
  void write(const std::filesystem::path& folder) const;

 private:
  std::map<std::string, Entry> entries_;
};

nlohmann::json to_json(const RecordedTree& tree);
/// Throws Error for a path or a link that leads out of the tree: the JSON is another machine's.
RecordedTree tree_from_json(const nlohmann::json& document);

}  // namespace gdrbench::doctor
