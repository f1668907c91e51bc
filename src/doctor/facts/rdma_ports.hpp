#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "topology/root.hpp"
#include "verbs/gid.hpp"

/// Ports of RDMA devices with their GIDs and counters, and the netdevs and IPv4 subnets behind them, from
/// sysfs and procfs below a root.
namespace gdrbench::doctor {

enum class Transport {
  infiniband,  ///< InfiniBand or RoCE, in hardware
  soft_roce,   ///< rdma_rxe
  iwarp,       ///< in hardware
  soft_iwarp,  ///< siw
  other        ///< usNIC, EFA …
};

struct RdmaPort {
  std::string device;  ///< "mlx5_0"
  int number = 1;
  Transport transport = Transport::infiniband;
  std::string state;           ///< "ACTIVE", "DOWN", "INIT", "ARMED"; empty where it cannot be read
  std::string physical_state;  ///< "LinkUp", "Polling", "Disabled" …
  std::string link_layer;      ///< "Ethernet", "InfiniBand"
  double gigabits_per_second = 0;
  int lanes = 0;  ///< 0 where `rate` does not tell

  std::string folder() const;   ///< "sys/class/infiniband/mlx5_0/ports/1"
  std::string subject() const;  ///< "mlx5_0 port 1"
  bool is_active() const { return state == "ACTIVE"; }
  bool is_roce() const {
    return link_layer == "Ethernet" &&
           (transport == Transport::infiniband || transport == Transport::soft_roce);
  }
};

std::vector<RdmaPort> rdma_ports(const topology::Root& root);

/// A filled slot of a port's GID table, and the netdev that it belongs to; empty where the kernel does not
/// tell.
struct Gid {
  verbs::GidEntry entry;
  std::string netdev;
};

/// Slots that are empty read as EINVAL or as zeros, and are left out.
std::vector<Gid> gid_table(const topology::Root& root, const RdmaPort& port);

/// The one that gdrbench would use; absent in an empty table.
std::optional<Gid> chosen_gid(const std::vector<Gid>& table);

/// The netdev of a port, by its GIDs, else by its PCI function; empty where there is none to be seen.
std::string netdev_of(const topology::Root& root, const RdmaPort& port);

/// Largest path MTU, 256 … 4096 bytes, that a netdev's MTU leaves room for; 0 where even 256 does not fit.
/// `overhead` is what headers may take: the kernel counts 96 bytes for hardware (GRH, UDP, BTH, XRC, atomic
/// extension and ICRC) and 80 in rdma_rxe.
int path_mtu(std::int64_t netdev_mtu, int overhead);
inline constexpr int hardware_overhead_bytes = 96;
inline constexpr int rxe_overhead_bytes = 80;

/// Values by "mlx5_0/1/out_of_sequence": device, port, counter.
using Counters = std::map<std::string, std::uint64_t>;

/// What the ports' `hw_counters` and `counters` hold now. Names that are settings are left out, and so is
/// what is no number.
Counters read_counters(const topology::Root& root);

/// An IPv4 subnet that netdevs are attached to, from /proc/net/route: addresses themselves are in no file
/// that says whose they are.
struct Subnet {
  std::uint32_t address = 0, mask = 0;  ///< in host byte order
  friend bool operator<(const Subnet& a, const Subnet& b) {
    return std::tie(a.address, a.mask) < std::tie(b.address, b.mask);
  }
};

/// "10.0.0.0/24".
std::string to_string(const Subnet& subnet);
/// Of RFC 3927, 169.254.0.0/16: distributions give it to interfaces without being asked.
bool is_link_local(std::uint32_t address);

struct AttachedSubnet {
  std::string netdev;
  Subnet subnet;
};

/// The main table's routes without a gateway to more than one address; the kernel makes one for each address.
std::vector<AttachedSubnet> attached_subnets(std::string_view route_table);

/// The same as /proc/net/route would hold them, without a newline at the end.
std::string route_table(const std::vector<AttachedSubnet>& attached);

inline constexpr const char* route_file = "proc/net/route";
inline constexpr std::size_t max_route_bytes = 16 << 20;

}  // namespace gdrbench::doctor
