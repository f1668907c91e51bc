#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "doctor/facts/facts.hpp"
#include "topology/root.hpp"

namespace gdrbench::doctor {

/// Files, links and folders of a recorded machine. Paths are relative, without a leading slash; the content
/// of a link is its target.
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

  /// Throws UsageError if write() would refuse the folder.
  static void require_free(const std::filesystem::path& folder);
  /// Throws UsageError for a folder inside the one that is recorded.
  static void require_apart(const std::filesystem::path& folder, const std::filesystem::path& source);
  /// Into an empty folder, or one that it creates. Throws UsageError for a folder that is not empty or a
  /// dangling link, SystemError with the path where writing fails; then nothing of it is left.
  void write(const std::filesystem::path& folder) const;

 private:
  std::map<std::string, Entry> entries_;
};

nlohmann::json to_json(const RecordedTree& tree);
/// Throws Error for a path or a link that leads out of the tree: the JSON comes from another machine.
RecordedTree tree_from_json(const nlohmann::json& document);

/// All that readers and checks may look at of a root, and answers.json and topology.xml (hwloc's export):
/// what
/// `--snapshot` takes. Files that cannot be read become links to themselves, which cannot be read either. For
/// a process without threads and GPU: hwloc exports in a child.
RecordedTree record(const topology::Root& root, const Answers& answers);

}  // namespace gdrbench::doctor
