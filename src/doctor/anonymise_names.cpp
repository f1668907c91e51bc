#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "doctor/anonymise.hpp"
#include "doctor/anonymise_texts.hpp"

namespace gdrbench::doctor {
namespace {

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace

PrivateNames private_names(const topology::Root& root) {
  PrivateNames names;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) names.hosts.emplace_back(host.data());
  for (const topology::Root& one : {topology::Root(), root})
    for (const char* file : {"proc/sys/kernel/hostname", "etc/hostname", "etc/mailname"})
      names.hosts.push_back(one.read(file, 256).text);
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"})
    if (const char* value = std::getenv(variable)) names.users.emplace_back(value);
  if (const passwd* entry = getpwuid(getuid())) names.users.emplace_back(entry->pw_name);
  return names;
}

Anonymiser::Anonymiser(const PrivateNames& names) {
  for (const std::string& host : names.hosts) {
    const std::size_t dot = host.find('.');
    add_name(host, "host1");
    add_name(host.substr(0, dot), "host1");
    if (dot != std::string::npos) add_name(host.substr(dot + 1), "example.org");
  }
  for (const std::string& user : names.users) add_name(user, "user1");
  std::sort(names_.begin(), names_.end(),
            [](const Name& a, const Name& b) { return a.lower.size() > b.lower.size(); });
}

void Anonymiser::add_name(const std::string& name, const std::string& stand_in) {
  const std::string known = lower(name);
  constexpr std::size_t shortest = 3;
  // Numbers are in every log.
  if (known.size() < shortest || known.find_first_not_of("0123456789") == std::string::npos ||
      known == "(none)" || is_common_word(known))
    return;
  names_.push_back({known, stand_in});
  // As the device mapper writes it.
  std::string doubled;
  for (const char c : known) doubled += c == '-' ? "--" : std::string(1, c);
  if (doubled != known) names_.push_back({doubled, stand_in});
}

Anonymiser::Match Anonymiser::match_name(std::string_view text, std::size_t at) const {
  for (const Name& name : names_) {
    const std::size_t size = name.lower.size();
    if (text.size() - at < size || lower(text.substr(at, size)) != name.lower) continue;
    if (at + size < text.size() && is_word(text[at + size])) continue;
    return {size, name.stand_in};
  }
  return {};
}

std::string Anonymiser::group_path(std::string_view path) {
  constexpr std::string_view common[] = {"",
                                         ".",
                                         "..",
                                         "system.slice",
                                         "user.slice",
                                         "init.scope",
                                         "app.slice",
                                         "session.slice",
                                         "machine.slice",
                                         "background.slice",
                                         "docker",
                                         "kubepods",
                                         "burstable",
                                         "besteffort",
                                         "guaranteed",
                                         "kubepods.slice",
                                         "kubepods-burstable.slice",
                                         "kubepods-besteffort.slice",
                                         "kubepods-guaranteed.slice",
                                         "lxc",
                                         "lxc.payload",
                                         "libpod_parent",
                                         "machine",
                                         "system",
                                         "slurm",
                                         "containerd",
                                         "crio",
                                         "rdma.max",
                                         "rdma.current"};
  std::string result;
  for (bool is_first = true;; is_first = false) {
    const std::string part(path.substr(0, path.find('/')));
    if (!is_first) result += '/';
    if (std::find(std::begin(common), std::end(common), part) != std::end(common))
      result += part;
    else  // Checks take a path with ".." for one that leads out of a container.
      result +=
          fmt::format("group{}{}", number("group", part), part.find("..") != std::string::npos ? ".." : "");
    if (part.size() == path.size()) return result;
    path.remove_prefix(part.size() + 1);
  }
}

// Folders of users, and of root's: what lies between there and the file may name a project.
Anonymiser::Match Anonymiser::match_home(std::string_view text, std::size_t at, Which which) {
  const std::string_view rest = text.substr(at);
  constexpr std::string_view of_users = "/home", of_root = "/root";
  const auto is_below = [&](std::string_view folder) {
    return rest.starts_with(folder) && rest.substr(folder.size()).starts_with('/');
  };
  const bool is_home = is_below(of_users);
  if (!is_home && (!is_below(of_root) || (at > 0 && is_word(text[at - 1])))) return {};
  const std::size_t length = std::min(rest.find_first_of(" \t\n\"'`:,;()[]<>|="), rest.size());
  const std::string_view below = rest.substr(6, length - 6);
  const std::size_t slash = below.rfind('/');
  const std::string_view file = slash != std::string_view::npos ? below.substr(slash + 1)
                                : is_home                       ? std::string_view()
                                                                : below;
  return {length, "/home/user1" + (file.empty() ? "" : "/" + replace(file, which))};
}

}  // namespace gdrbench::doctor
