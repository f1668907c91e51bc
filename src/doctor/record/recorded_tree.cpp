#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "doctor/record/record.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::doctor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Kind = RecordedTree::Kind;

constexpr const char* disk_remedy = "name a folder that you may write to, on a disk with free space";

[[noreturn]] void fail_on(const std::string& tried, const fs::path& path, int errno_value) {
  throw SystemError(errno_value, fmt::format("{} {}", tried, path.native()), disk_remedy);
}

// Errors give the name that the file was to have in the end.
void write_file(const fs::path& path, const fs::path& name, const std::string& content) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) fail_on("creating", name, errno);
  std::size_t done = 0;
  int fault = 0;
  while (done < content.size() && fault == 0) {
    const ssize_t written = write(fd, content.data() + done, content.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fault = errno;
    if (written == 0) fault = ENOSPC;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
  // Some file systems report a full disk only here.
  if (close(fd) != 0 && fault == 0) fault = errno;
  if (fault != 0) fail_on("writing", name, fault);
}

void make_folders(const fs::path& path, const fs::path& name) {
  std::error_code fault;
  fs::create_directories(path, fault);
  if (fault) fail_on("creating folder", name, fault.value());
}

void write_entries(const RecordedTree& tree, const fs::path& folder, const fs::path& name) {
  for (const auto& [path, entry] : tree.entries()) {
    const fs::path place = folder / path, told = name / path;
    if (entry.kind == Kind::folder)
      make_folders(place, told);
    else
      make_folders(place.parent_path(), told.parent_path());
    if (entry.kind == Kind::file) write_file(place, told, entry.content);
    if (entry.kind == Kind::link && symlink(entry.content.c_str(), place.c_str()) != 0)
      fail_on("linking", told, errno);
  }
}

// A folder that is there already may be a mount point or have its owner's permissions: it stays.
void write_into_existing(const RecordedTree& tree, const fs::path& folder) {
  try {
    write_entries(tree, folder, folder);
  } catch (...) {
    std::error_code ignored;
    for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
         entry.increment(ignored)) {
      std::error_code left;
      fs::remove_all(entry->path(), left);
    }
    throw;
  }
}

// Beside its place, so that there is a whole recording or none.
void write_as_new(const RecordedTree& tree, const fs::path& folder) {
  const fs::path place = folder.has_filename() ? folder : folder.parent_path();
  if (place.has_parent_path()) make_folders(place.parent_path(), place.parent_path());
  const fs::path partial = fmt::format("{}.partial-{}", place.native(), getpid());
  if (mkdir(partial.c_str(), 0777) != 0) fail_on("creating folder", partial, errno);
  try {
    write_entries(tree, partial, place);
    if (rename(partial.c_str(), place.c_str()) != 0) fail_on("creating folder", place, errno);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(partial, ignored);
    throw;
  }
}

bool stays_inside(const fs::path& path) {
  if (path.empty() || path.is_absolute()) return false;
  const fs::path normal = path.lexically_normal();
  return normal != "." && *normal.begin() != "..";
}

// Binary content as hexadecimal digits behind a byte that no such text begins with.
std::string to_text(const std::string& content) {
  const bool is_plain = std::all_of(content.begin(), content.end(),
                                    [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\t'; });
  if (is_plain) return content;
  std::string text = "\x01";
  for (const char c : content) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

std::string from_text(const std::string& text) {
  if (!text.starts_with('\x01')) return text;
  std::string content;
  for (std::size_t at = 1; at + 1 < text.size(); at += 2)
    content += static_cast<char>(std::strtoul(text.substr(at, 2).c_str(), nullptr, 16));
  return content;
}

// A later file must not be written through a link.
void require_no_link_above(const RecordedTree& tree, const fs::path& path) {
  for (fs::path above = path.parent_path(); !above.empty(); above = above.parent_path())
    if (const auto found = tree.entries().find(above.native());
        found != tree.entries().end() && found->second.kind != Kind::folder)
      throw Error(fmt::format("malformed recording: '{}' is below '{}', which is not a folder", path.native(),
                              above.native()));
}

}  // namespace

void RecordedTree::require_free(const fs::path& folder) {
  std::error_code fault;
  const fs::path place = folder.has_filename() ? folder : folder.parent_path();  // "folder/" follows a link
  const fs::file_status itself = fs::symlink_status(place, fault);
  if (!fs::exists(itself)) return;
  if (fs::is_symlink(itself) && !fs::exists(place, fault))
    throw UsageError(fmt::format("{}: dangling symbolic link; name a new folder", folder.native()));
  const bool is_free = fs::is_directory(folder, fault) && fs::is_empty(folder, fault);
  if (fault) fail_on("reading folder", folder, fault.value());
  if (!is_free)
    throw UsageError(fmt::format("{}: exists and is not an empty folder; name a new one", folder.native()));
}

void RecordedTree::require_apart(const fs::path& folder, const fs::path& source) {
  std::error_code fault;
  const fs::path top = fs::canonical(source, fault);
  if (fault) return;  // what is not there is told where it is read
  const fs::path place = fs::weakly_canonical(folder, fault);
  const auto [left, other] = std::mismatch(top.begin(), top.end(), place.begin(), place.end());
  if (!fault && left == top.end())
    throw UsageError(fmt::format("--record {}: is inside the snapshot {}; name a folder outside it",
                                 folder.native(), source.native()));
}

void RecordedTree::write(const fs::path& folder) const {
  require_free(folder);
  std::error_code fault;
  if (fs::exists(folder, fault))
    write_into_existing(*this, folder);
  else
    write_as_new(*this, folder);
}

json to_json(const RecordedTree& tree) {
  json files = json::object(), links = json::object(), folders = json::array();
  for (const auto& [path, entry] : tree.entries()) {
    if (entry.kind == Kind::file) files[path] = to_text(entry.content);
    if (entry.kind == Kind::link) links[path] = entry.content;
    if (entry.kind == Kind::folder) folders.push_back(path);
  }
  return {{"files", files}, {"links", links}, {"folders", folders}};
}

RecordedTree tree_from_json(const json& document) {
  RecordedTree tree;
  const auto take = [&](const std::string& path, Kind kind, const std::string& content) {
    const fs::path target = kind == Kind::link ? fs::path(path).parent_path() / content : fs::path(path);
    if (!stays_inside(path) || !stays_inside(target) || fs::path(path).lexically_normal().native() != path)
      throw Error(fmt::format("malformed recording: '{}' leads out of its folder", path));
    tree.add(path, kind, content);
  };
  const json none = json::object();
  const auto member = [&](const char* key) -> const json& {
    const auto found = document.find(key);
    return found == document.end() ? none : *found;
  };
  for (const auto& [path, content] : member("files").items())
    if (content.is_string()) take(path, Kind::file, from_text(content.get<std::string>()));
  for (const auto& [path, content] : member("links").items())
    if (content.is_string()) take(path, Kind::link, content.get<std::string>());
  for (const json& path : member("folders"))
    if (path.is_string()) take(path.get<std::string>(), Kind::folder, "");
  for (const auto& [path, entry] : tree.entries()) require_no_link_above(tree, path);
  return tree;
}

}  // namespace gdrbench::doctor
