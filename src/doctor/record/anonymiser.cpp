#include <arpa/inet.h>
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "doctor/facts/host.hpp"
#include "doctor/record/anonymise.hpp"

namespace gdrbench::doctor {
namespace {

// Words of the kernel, of drivers or of our texts that may be a host's or user's name too: replacing them
// would tell nobody less, and spoil what checks look for.
constexpr std::string_view common_words =
    " aer amd auto bar bnxt bnxt_re bridge bus class cluster com compromised core corp cpu cuda default "
    "dev device disagrees dma dmabuf dmar driver efa error failed fault force fallen gdr gdrdrv gpu "
    "health home host hugepages hypervisor infiniband internal iommu irdma irq kernel lan linux link "
    "local localdomain localhost lost madvise memory mlx4 mlx4_core mlx5 mlx5_core mlx5_ib module net "
    "never nic node none nouveau numa nv_peer_mem nvidia nvidia-uvm nvidia_drm nvidia_peermem nvidia_uvm "
    "nvme nvrm off open org page pass passthrough pci pcie peer peermem performance pid port proc rdma "
    "realloc register responder rdma_rxe rminitadapter root rxe siw soft strict symbol sys system timeout "
    "transfer unknown user verbs version vfio virtual vm warning write xid ";

bool is_common_word(std::string_view word) {
  return is_in_list(common_words, word);
}

bool is_hex(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

std::vector<std::string> colon_groups(std::string_view text) {
  std::vector<std::string> groups(1);
  for (const char c : text)
    if (c == ':')
      groups.emplace_back();
    else
      groups.back() += c;
  return groups;
}

bool all_of_size(const std::vector<std::string>& groups, std::size_t size) {
  return std::all_of(groups.begin(), groups.end(), [size](const std::string& group) {
    return group.size() == size && std::all_of(group.begin(), group.end(), is_hex);
  });
}

bool is_empty_or_broadcast(std::string_view address) {
  return address.find_first_not_of("0:") == std::string_view::npos ||
         lower_case(address).find_first_not_of("f:") == std::string::npos;
}

// The last bytes of an address that stand for a number.
std::string hex_groups(unsigned number, std::size_t groups, std::size_t digits, const char* first) {
  std::string text(first);
  for (std::size_t group = 1; group < groups; ++group) {
    const std::size_t shift = (groups - 1 - group) * digits * 4;
    const unsigned part = shift < 32 ? number >> shift & ((1U << digits * 4) - 1) : 0;
    text += fmt::format(":{:0{}x}", part, digits);
  }
  return text;
}

}  // namespace

unsigned Anonymiser::number(const std::string& kind, const std::string& original) {
  auto& known = seen_[kind];
  return known.try_emplace(original, static_cast<unsigned>(known.size()) + 1).first->second;
}

std::string Anonymiser::text(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    // Elsewhere as many digits may be an address in memory.
    result += replace(line, {.names = true, .bare = lower_case(line).find("guid") != std::string::npos});
    text.remove_prefix(line.size());
  }
  return result;
}

std::string Anonymiser::replace(std::string_view text, Which which) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const bool begins = at == 0 || !is_word_character(text[at - 1]) || text[at] == '/';
    const Match found = begins ? match(text, at, which) : Match{};
    if (found.length > 0) {
      result += found.stand_in;
      at += found.length;
    } else {
      result += text[at++];
    }
  }
  return result;
}

Anonymiser::Match Anonymiser::match(std::string_view text, std::size_t at, Which which) {
  const std::string_view rest = text.substr(at);
  if (text[at] == '/') return match_home(text, at, which);
  if (which.names)
    if (Match found = match_name(text, at); found.length > 0) return found;
  if (Match found = match_uuid(rest); found.length > 0) return found;
  if (which.bare)
    if (Match found = match_bare(rest); found.length > 0) return found;
  if (at == 0 || text[at - 1] != ':')
    if (Match found = match_colons(rest); found.length > 0) return found;
  if (Match found = match_device_name(rest); found.length > 0) return found;
  if (which.ipv4 && (at == 0 || text[at - 1] != '.')) return match_ipv4(rest);
  return {};
}

Anonymiser::Match Anonymiser::match_uuid(std::string_view text) {
  constexpr std::string_view shape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (text.size() < shape.size() || (text.size() > shape.size() && is_word_character(text[shape.size()])))
    return {};
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == '-' ? text[i] != '-' : !is_hex(text[i])) return {};
  return {shape.size(), fmt::format("00000000-0000-4000-8000-{:012x}",
                                    number("uuid", lower_case(text.substr(0, shape.size()))))};
}

Anonymiser::Match Anonymiser::match_colons(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && (is_hex(text[length]) || text[length] == ':' || text[length] == '.'))
    ++length;
  if (length < text.size() && is_word_character(text[length])) return {};
  // The end of a sentence, or what follows an address.
  while (length > 0 &&
         (text[length - 1] == '.' || (text[length - 1] == ':' && !text.substr(0, length).ends_with("::"))))
    --length;
  const std::string address(text.substr(0, length));
  if (std::count(address.begin(), address.end(), ':') < 2) return {};
  const std::vector<std::string> groups = colon_groups(address);
  if (is_empty_or_broadcast(address)) return {length, address};
  std::string digits = address;
  std::erase(digits, ':');
  if (all_of_size(groups, 2) && (groups.size() == 6 || groups.size() == 8 || groups.size() == 20))
    return {length, hardware(digits, 2)};
  if (all_of_size(groups, 4) && groups.size() == 4) return {length, hardware(digits, 4)};
  in6_addr parsed{};
  if (inet_pton(AF_INET6, address.c_str(), &parsed) != 1) return {};
  return {length, ipv6(address, all_of_size(groups, 4))};
}

Anonymiser::Match Anonymiser::match_bare(std::string_view text) {
  const std::size_t head = text.starts_with("0x") ? 2 : 0;
  std::size_t length = head;
  while (length < text.size() && is_hex(text[length])) ++length;
  if (length < text.size() && is_word_character(text[length])) return {};
  const std::string digits(text.substr(head, length - head));
  std::string stand_in;
  if (digits.size() != 12 && digits.size() != 16 && digits.size() != 32) return {};
  if (is_empty_or_broadcast(digits)) return {length, std::string(text.substr(0, length))};
  if (digits.size() == 32) {
    std::string gid;
    for (std::size_t at = 0; at < digits.size(); at += 4)
      gid += fmt::format("{}{}", at == 0 ? "" : ":", digits.substr(at, 4));
    stand_in = ipv6(gid, true);
  } else {
    stand_in = hardware(digits, 2);
  }
  std::erase(stand_in, ':');
  return {length, fmt::format("{}{}", text.substr(0, head), stand_in)};
}

// A MAC address or a GUID, the same with and without colons.
std::string Anonymiser::hardware(const std::string& digits, std::size_t digits_of_group) {
  const unsigned which = number(fmt::format("{} digits", digits.size()), lower_case(digits));
  return hex_groups(which, digits.size() / digits_of_group, digits_of_group,
                    digits_of_group == 4 ? "0200" : "02");
}

Anonymiser::Match Anonymiser::match_ipv4(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() &&
         (std::isdigit(static_cast<unsigned char>(text[length])) != 0 || text[length] == '.'))
    ++length;
  while (length > 0 && text[length - 1] == '.') --length;
  if (length < text.size() && is_word_character(text[length])) return {};
  const std::string address(text.substr(0, length));
  in_addr parsed{};
  if (inet_pton(AF_INET, address.c_str(), &parsed) != 1) return {};
  return {length, ipv4(address)};
}

// Interfaces that udev names by their address: "enx001122334455".
Anonymiser::Match Anonymiser::match_device_name(std::string_view text) {
  for (const std::string_view prefix : {"enx", "wlx", "ibx", "rocex", "iwx"}) {
    if (!text.starts_with(prefix)) continue;
    std::size_t length = prefix.size();
    while (length < text.size() && is_hex(text[length])) ++length;
    const std::size_t digits = length - prefix.size();
    if (digits < 12 || (length < text.size() && is_word_character(text[length]))) continue;
    const std::string address(text.substr(prefix.size(), digits));
    return {length,
            fmt::format("{}{:0{}x}", prefix, 0x020000000000 + number("name", lower_case(address)), digits)};
  }
  return {};
}

std::string Anonymiser::ipv4(const std::string& address) {
  in_addr parsed{};
  inet_pton(AF_INET, address.c_str(), &parsed);
  const std::uint32_t value = ntohl(parsed.s_addr);
  const std::uint32_t top = value >> 24;
  // This host, loopback, netmasks, multicast and broadcast tell nothing.
  if (top == 0 || top == 127 || top >= 224) return address;
  struct Range {
    std::uint32_t net;
    int bits;
  };
  // RFC 1918, 3927, 6598; all others become addresses of RFC 2544's network for benchmarks.
  constexpr Range kept[] = {
      {0x0a000000, 8}, {0xac100000, 12}, {0xc0a80000, 16}, {0xa9fe0000, 16}, {0x64400000, 10}};
  std::uint32_t net = 0xc6120000;
  for (const Range& range : kept)
    if (value >> (32 - range.bits) == range.net >> (32 - range.bits)) net = range.net;
  const std::uint32_t stand_in = net + 256 + number(fmt::format("ipv4 {:x}", net), address);
  return fmt::format("{}.{}.{}.{}", stand_in >> 24, stand_in >> 16 & 255, stand_in >> 8 & 255,
                     stand_in & 255);
}

std::string Anonymiser::ipv6(const std::string& address, bool in_full) {
  in6_addr parsed{};
  inet_pton(AF_INET6, address.c_str(), &parsed);
  std::array<char, INET6_ADDRSTRLEN> text{};
  std::uint8_t* const bytes = parsed.s6_addr;
  if (IN6_IS_ADDR_LOOPBACK(&parsed) || IN6_IS_ADDR_UNSPECIFIED(&parsed) || bytes[0] == 0xff) return address;
  // By its value: one address has many spellings.
  inet_ntop(AF_INET6, bytes, text.data(), text.size());
  const std::string original = text.data();
  if (IN6_IS_ADDR_V4MAPPED(&parsed)) {
    inet_ntop(AF_INET, bytes + 12, text.data(), text.size());
    inet_pton(AF_INET, ipv4(text.data()).c_str(), bytes + 12);
  } else {
    const bool link_local = bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
    const bool unique_local = (bytes[0] & 0xfe) == 0xfc;
    const char* const net = link_local ? "fe80::" : unique_local ? "fd00::" : "2001:db8::";
    const unsigned which = number(fmt::format("ipv6 {}", net), original);
    inet_pton(AF_INET6, net, bytes);
    for (std::size_t i = 0; i < 4; ++i) bytes[15 - i] = static_cast<std::uint8_t>(which >> 8 * i);
  }
  if (!in_full) return inet_ntop(AF_INET6, bytes, text.data(), text.size());
  std::string full;
  for (std::size_t i = 0; i < 16; i += 2)
    full += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", bytes[i], bytes[i + 1]);
  return full;
}

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
  const std::string known = lower_case(name);
  constexpr std::size_t min_name_length = 3;
  // Numbers are in every log.
  if (known.size() < min_name_length || known.find_first_not_of("0123456789") == std::string::npos ||
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
    if (text.size() - at < size || lower_case(text.substr(at, size)) != name.lower) continue;
    if (at + size < text.size() && is_word_character(text[at + size])) continue;
    return {size, name.stand_in};
  }
  return {};
}

std::string Anonymiser::group_path(std::string_view path) {
  constexpr std::string_view known_groups[] = {
      "",
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
      "rdma.current",
  };
  std::string result;
  for (bool is_first = true;; is_first = false) {
    const std::string part(path.substr(0, path.find('/')));
    if (!is_first) result += '/';
    if (std::find(std::begin(known_groups), std::end(known_groups), part) != std::end(known_groups))
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
  if (!is_home && (!is_below(of_root) || (at > 0 && is_word_character(text[at - 1])))) return {};
  const std::size_t length = std::min(rest.find_first_of(" \t\n\"'`:,;()[]<>|="), rest.size());
  const std::string_view below = rest.substr(6, length - 6);
  const std::size_t slash = below.rfind('/');
  const std::string_view file = slash != std::string_view::npos ? below.substr(slash + 1)
                                : is_home                       ? std::string_view()
                                                                : below;
  return {length, "/home/user1" + (file.empty() ? "" : "/" + replace(file, which))};
}

}  // namespace gdrbench::doctor
