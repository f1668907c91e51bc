#include "topology/pcie_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace gdrbench::topology {
namespace {

// "32.0 GT/s PCIe"; 0 for "Unknown", and for numbers that no link has: a recorded file may hold anything.
double transfers_per_second(const Root& root, const std::string& path) {
  constexpr double fastest = 1e12;
  const double value = std::strtod(root.read(path, 64).text.c_str(), nullptr) * 1e9;
  return value > 0 && value < fastest ? value : 0;
}

// Of a function without a link, the kernel says 255 or 0.
int lanes(const Root& root, const std::string& path) {
  constexpr std::int64_t widest = 32;
  const std::int64_t value = root.number(path).value_or(0);
  return value > 0 && value <= widest ? static_cast<int>(value) : 0;
}

std::string speed_text(double transfers_per_second, int lanes) {
  return fmt::format("{:.1f} GT/s x{}", transfers_per_second / 1e9, lanes);
}

}  // namespace

PcieLink read_link(const Root& root, const std::string& address) {
  const std::string folder = "sys/bus/pci/devices/" + address;
  return {.transfers_per_second = transfers_per_second(root, folder + "/current_link_speed"),
          .lanes = lanes(root, folder + "/current_link_width"),
          .max_transfers_per_second = transfers_per_second(root, folder + "/max_link_speed"),
          .max_lanes = lanes(root, folder + "/max_link_width")};
}

double link_bytes_per_second(double transfers_per_second, int lanes) {
  constexpr double fastest_8b10b = 5e9, fastest_128b130b = 32e9;
  const double share = transfers_per_second <= fastest_8b10b      ? 8.0 / 10
                       : transfers_per_second <= fastest_128b130b ? 128.0 / 130
                                                                  : 236.0 / 256;
  return transfers_per_second * lanes * share / 8;
}

double bytes_per_second(const PcieLink& link) {
  return link_bytes_per_second(link.transfers_per_second, link.lanes);
}

double max_bytes_per_second(const PcieLink& link) {
  return link_bytes_per_second(link.max_transfers_per_second, link.max_lanes);
}

std::vector<Hop> hops_between(const std::vector<Hop>& here, const std::vector<Hop>& there) {
  const auto same = [](const Hop& a, const Hop& b) { return a.address == b.address; };
  const auto [own, other] = std::mismatch(here.begin(), here.end(), there.begin(), there.end(), same);
  std::vector<Hop> passed(std::make_reverse_iterator(here.end()), std::make_reverse_iterator(own));
  passed.insert(passed.end(), other, there.end());
  return passed;
}

std::optional<Hop> narrowest(const std::vector<Hop>& hops) {
  std::optional<Hop> least;
  for (const Hop& hop : hops) {
    const double rate = bytes_per_second(hop.link);
    if (rate > 0 && (!least || rate < bytes_per_second(least->link))) least = hop;
  }
  return least;
}

std::string to_string(const PcieLink& link) {
  if (bytes_per_second(link) == 0) return "unknown";
  std::string now = speed_text(link.transfers_per_second, link.lanes);
  if (max_bytes_per_second(link) <= bytes_per_second(link)) return now;
  return fmt::format("{}, at most {}", now, speed_text(link.max_transfers_per_second, link.max_lanes));
}

}  // namespace gdrbench::topology
