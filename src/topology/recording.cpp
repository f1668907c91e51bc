#include "topology/recording.hpp"

#include <fmt/format.h>

#include "gdrbench/error.hpp"

namespace gdrbench::topology {
namespace {

namespace fs = std::filesystem;

bool is_inside(const fs::path& path, const fs::path& top) {
  const fs::path inside = path.lexically_relative(top);
  return !inside.empty() && *inside.begin() != "..";
}

// A link to nothing is judged by its text: what it names may be made later.
bool leads_out(const fs::path& link, const fs::path& top) {
  std::error_code fault;
  if (const fs::path target = fs::canonical(link, fault); !fault) return !is_inside(target, top);
  const fs::path text = fs::read_symlink(link, fault);
  return !is_inside((link.parent_path() / text).lexically_normal(), top);
}

void require_plain(const fs::path& top, const std::string& named) {
  std::error_code fault;
  for (fs::recursive_directory_iterator entry(top, fs::directory_options::skip_permission_denied, fault), end;
       !fault && entry != end; entry.increment(fault)) {
    const fs::file_status status = entry->symlink_status(fault);
    if (fs::is_other(status))
      throw UsageError(fmt::format("{}: {} is a device, a socket or a pipe, and so is no recording", named,
                                   entry->path().native()));
    if (fs::is_symlink(status) && leads_out(entry->path(), top))
      throw UsageError(fmt::format("{}: {} leads out of the folder, which no link of a recording does", named,
                                   entry->path().native()));
  }
}

}  // namespace

Root open_recording(const fs::path& folder, const std::string& named) {
  std::error_code fault;
  if (!fs::is_directory(folder, fault))
    throw UsageError(fmt::format("{}: {}; name a folder that gdrbench doctor --record made", named,
                                 fault ? fault.message() : "is no folder"));
  // As "/" it would be this machine.
  Root root(fs::canonical(folder, fault));
  const bool holds_something =
      root.exists("sys") || root.exists("proc") || root.exists("answers.json") || root.exists("topology.xml");
  if (fault || root.is_this_machine() || !holds_something)
    throw UsageError(
        fmt::format("{}: holds neither sys nor proc nor answers.json nor topology.xml; name a folder that "
                    "gdrbench doctor "
                    "--record made",
                    named));
  require_plain(root.folder(), named);
  return root;
}

}  // namespace gdrbench::topology
