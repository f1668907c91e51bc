#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/facts/facts.hpp"
#include "doctor/record/record.hpp"
#include "topology/root.hpp"

namespace gdrbench::doctor {

/// Who must not be told.
struct PrivateNames {
  std::vector<std::string>
      hosts;  ///< "node-b.cluster.example.com"; its first label and its domain go with it
  std::vector<std::string> users;
};

/// Names of this machine, and of those who may be at work on it; and of the machine that the root is of,
/// where its files tell them.
PrivateNames private_names(const topology::Root& root);

/// Replaces host and user names, folders of users, IP addresses and GIDs, MAC addresses, GUIDs and UUIDs. The
/// same is always replaced by the same, different ones by different ones; addresses keep their kind:
/// link-local, private, IPv4-mapped, global.
class Anonymiser {
 public:
  explicit Anonymiser(const PrivateNames& names);

  /// Free text, of the kernel's log or of a probe.
  std::string text(std::string_view text);
  /// What files of the kernel hold, paths and names of devices: no name of a host or user occurs there, but
  /// "nvidia" or "pci" may be one.
  std::string kernel_text(std::string_view text) { return replace(text, {}); }
  /// The same, but four numbers with dots between them are a version.
  std::string text_with_versions(std::string_view text) { return replace(text, {.ipv4 = false}); }
  /// The same as kernel_text, but 12, 16 or 32 hexadecimal digits are a MAC address, a GUID or a GID.
  std::string addresses(std::string_view text) { return replace(text, {.bare = true}); }
  /// The path of a cgroup, or one below such a path: only parts that many machines have stay.
  std::string group_path(std::string_view path);

 private:
  struct Name {
    std::string lower;
    std::string stand_in;
  };
  struct Match {
    std::size_t length = 0;  ///< 0: none
    std::string stand_in;
  };
  struct Which {
    bool names = false;
    bool ipv4 = true;
    bool bare = false;  ///< addresses without colons
  };
  void add_name(const std::string& name, const std::string& stand_in);
  std::string replace(std::string_view text, Which which);
  Match match(std::string_view text, std::size_t at, Which which);
  Match match_name(std::string_view text, std::size_t at) const;
  Match match_home(std::string_view text, std::size_t at, Which which);
  Match match_bare(std::string_view text);
  Match match_uuid(std::string_view text);
  Match match_colons(std::string_view text);
  Match match_ipv4(std::string_view text);
  Match match_device_name(std::string_view text);
  std::string hardware(const std::string& digits, std::size_t digits_of_group);
  std::string ipv4(const std::string& address);
  std::string ipv6(const std::string& address, bool in_full);
  /// Which one it is among those of its kind, from 1 on.
  unsigned number(const std::string& kind, const std::string& original);

  std::vector<Name> names_;
  std::map<std::string, std::map<std::string, unsigned>> seen_;
};

/// All of a recording, its paths and links too; serial numbers and what else identifies hardware go as well.
/// The kernel's command line keeps only the parameters that checks may ask for.
RecordedTree anonymise(const RecordedTree& tree, const PrivateNames& names);

}  // namespace gdrbench::doctor
