#include "synthetic/faults.hpp"
#include "synthetic/healthy.hpp"

namespace gdrbench::synthetic {
namespace {

struct DgxNic {
  const char* device;
  const char* netdev;
};
constexpr DgxNic dgx_nics[] = {{"mlx5_0", "eth0"}, {"mlx5_1", "eth1"}};

std::string net_folder(const Machine& machine, const std::string& netdev) {
  return machine.tree.target("sys/class/net/" + netdev);
}

std::string conf_file(const std::string& interface, const std::string& setting) {
  return "proc/sys/net/ipv4/conf/" + interface + "/" + setting;
}

void set_port(Machine& machine, const std::string& device, const std::string& state,
              const std::string& physical_state) {
  machine.tree.file(port_folder(machine, device) + "/state", state);
  machine.tree.file(port_folder(machine, device) + "/phys_state", physical_state);
  machine.rdma(device).ports.front().state = state.substr(3);
}

void set_link(Machine& machine, const DgxNic& nic, const std::string& flags, const std::string& carrier) {
  const std::string net = net_folder(machine, nic.netdev);
  machine.tree.file(net + "/flags", flags);
  machine.tree.file(net + "/operstate", "down");
  machine.tree.file(net + "/carrier", carrier);
  set_port(machine, nic.device, "1: DOWN", "3: Disabled");
}

Machine with_links(const std::string& flags, const std::string& carrier) {
  Machine machine = dgx();
  for (const DgxNic& nic : dgx_nics) set_link(machine, nic, flags, carrier);
  return machine;
}

Machine with_one_port_down() {
  Machine machine = dgx();
  set_link(machine, dgx_nics[1], "0x1003", "0");
  return machine;
}

void make_infiniband(Machine& machine, const DgxNic& nic) {
  const std::string port = port_folder(machine, nic.device);
  machine.tree.file(port + "/link_layer", "InfiniBand");
  for (const char* table : {"/gids", "/gid_attrs"}) machine.tree.remove(port + table);
  machine.add_gid(nic.device, 0, "fe80:0000:0000:0000:e8eb:d303:0014:2a8c", "IB/RoCE v1", "");
  machine.rdma(nic.device).ports.front().link_layer = "InfiniBand";
}

Machine infiniband() {
  Machine machine = dgx();
  for (const DgxNic& nic : dgx_nics) make_infiniband(machine, nic);
  return machine;
}

Machine infiniband_with(const std::string& state, const std::string& physical_state) {
  Machine machine = infiniband();
  for (const DgxNic& nic : dgx_nics) set_port(machine, nic.device, state, physical_state);
  return machine;
}

Machine infiniband_with_rate(const std::string& rate) {
  Machine machine = infiniband();
  for (const DgxNic& nic : dgx_nics) machine.tree.file(port_folder(machine, nic.device) + "/rate", rate);
  return machine;
}

Machine infiniband_with_mtu(int active) {
  Machine machine = infiniband();
  for (const DgxNic& nic : dgx_nics) machine.rdma(nic.device).ports.front().active_mtu = active;
  return machine;
}

Machine of_both_link_layers() {
  Machine machine = dgx();
  make_infiniband(machine, dgx_nics[1]);
  return machine;
}

Machine with_a_slower_port() {
  Machine machine = dgx();
  machine.tree.file(port_folder(machine, "mlx5_1") + "/rate", "200 Gb/sec (4X HDR)");
  return machine;
}

Machine with_unreadable_ports() {
  Machine machine = dgx();
  for (const DgxNic& nic : dgx_nics) machine.tree.file(port_folder(machine, nic.device) + "/state", "");
  return machine;
}

constexpr const char* link_local_gid = "fe80:0000:0000:0000:0000:0000:0000:0005";
constexpr const char* ipv4_gid = "0000:0000:0000:0000:0000:ffff:0a00:0005";

struct Slot {
  std::string gid, type;
};

// Both ports have these GIDs alone; an empty slot reads as zeros here, as EINVAL on the machine.
Machine with_gids(const std::vector<Slot>& slots) {
  Machine machine = dgx();
  for (const DgxNic& nic : dgx_nics) {
    const std::string port = port_folder(machine, nic.device);
    for (const char* table : {"/gids", "/gid_attrs"}) machine.tree.remove(port + table);
    int index = 0;
    for (const Slot& slot : slots) machine.add_gid(nic.device, index++, slot.gid, slot.type, nic.netdev);
    machine.tree.file(port + "/gids/9", "0000:0000:0000:0000:0000:0000:0000:0000");
  }
  return machine;
}

// The slots are there and have neither type nor netdev, as the kernel shows those that are free.
Machine with_slots_that_cannot_be_read() {
  Machine machine = with_gids({});
  for (const DgxNic& nic : dgx_nics)
    machine.tree.file(port_folder(machine, nic.device) + "/gids/0", link_local_gid);
  return machine;
}

// A VLAN's netdev, to which the best GIDs belong.
Machine with_gids_of(const std::string& netdev, bool is_there) {
  Machine machine = dgx();
  for (const DgxNic& nic : dgx_nics) machine.add_gid(nic.device, 3, ipv4_gid, "RoCE v2", netdev);
  if (is_there) {
    machine.tree.file("sys/class/net/" + netdev + "/operstate", "lowerlayerdown");
    machine.tree.file("sys/class/net/" + netdev + "/mtu", "9000");
  }
  return machine;
}

// The second port's address becomes 10.0.0.6, beside 10.0.0.5 of the first, and the settings are these for
// all interfaces; empty for a file that is not there.
Machine with_ports_in_one_subnet(const std::string& arp_ignore, const std::string& arp_announce,
                                 const std::string& rp_filter) {
  Machine machine = dgx();
  machine.add_gid("mlx5_1", 2, "0000:0000:0000:0000:0000:ffff:0a00:0006", "IB/RoCE v1", "eth1");
  machine.add_gid("mlx5_1", 3, "0000:0000:0000:0000:0000:ffff:0a00:0006", "RoCE v2", "eth1");
  machine.add_route("eth1", "0000000A", "00FFFFFF");
  for (const auto& [setting, value] :
       {std::pair("arp_ignore", arp_ignore), std::pair("arp_announce", arp_announce),
        std::pair("rp_filter", rp_filter)})
    if (!value.empty()) {
      for (const char* interface : {"eth0", "eth1"}) machine.tree.file(conf_file(interface, setting), "0");
      machine.tree.file(conf_file("all", setting), value);
    }
  return machine;
}

// Not set for all, but for both.
Machine with_settings_of_interfaces() {
  Machine machine = with_ports_in_one_subnet("0", "0", "0");
  for (const char* interface : {"eth0", "eth1"}) {
    machine.tree.file(conf_file(interface, "arp_ignore"), "1");
    machine.tree.file(conf_file(interface, "arp_announce"), "2");
  }
  return machine;
}

// What is set for all cannot be read, and may be more.
Machine with_settings_of_interfaces_alone() {
  Machine machine = with_ports_in_one_subnet("", "", "");
  for (const char* interface : {"eth0", "eth1"})
    for (const char* setting : {"arp_ignore", "arp_announce"})
      machine.tree.file(conf_file(interface, setting), "0");
  return machine;
}

Machine with_settings_of_one_interface() {
  Machine machine = with_settings_of_interfaces();
  machine.tree.file(conf_file("eth1", "arp_ignore"), "0");
  return machine;
}

Machine with_arp_filter() {
  Machine machine = with_ports_in_one_subnet("0", "2", "0");
  machine.tree.file(conf_file("all", "arp_filter"), "1");
  return machine;
}

// As some distributions do for every interface, which has no such address.
Machine with_link_local_routes() {
  Machine machine = dgx();
  for (const DgxNic& nic : dgx_nics) machine.add_route(nic.netdev, "0000FEA9", "0000FFFF");
  for (const char* setting : {"arp_ignore", "arp_announce", "rp_filter"})
    machine.tree.file(conf_file("all", setting), "0");
  return machine;
}

Machine with_netdev_mtu(int mtu, int active_mtu) {
  Machine machine = dgx();
  for (const DgxNic& nic : dgx_nics) {
    machine.tree.file(net_folder(machine, nic.netdev) + "/mtu", std::to_string(mtu));
    machine.rdma(nic.device).ports.front().active_mtu = active_mtu;
  }
  return machine;
}

Machine that_counted(const std::string& counter, std::uint64_t before, std::uint64_t after) {
  Machine machine = dgx();
  machine.answers.counters_before = {{"mlx5_0/1/" + counter, before}, {"mlx5_0/1/rx_read_requests", 5}};
  machine.answers.counters_after = {{"mlx5_0/1/" + counter, after}, {"mlx5_0/1/rx_read_requests", 90}};
  return machine;
}

Machine with_counter(const std::string& counter, const std::string& value) {
  Machine machine = dgx();
  machine.tree.file(port_folder(machine, "mlx5_0") + "/hw_counters/" + counter, value);
  return machine;
}

}  // namespace

std::vector<Scenario> rdma_port_faults() {
  return {
      {"dgx_with_netdevs_down", [] { return with_links("0x1002", ""); }, {"ports/netdev_down"}},
      {"dgx_without_carrier", [] { return with_links("0x1003", "0"); }, {"ports/no_carrier"}},
      {"dgx_with_one_port_down", with_one_port_down, {"ports/other_port_inactive"}},
      {"infiniband", infiniband, {}},
      {"infiniband_polling", [] { return infiniband_with("1: DOWN", "2: Polling"); }, {"ports/no_link"}},
      {"infiniband_disabled", [] { return infiniband_with("1: DOWN", "3: Disabled"); }, {"ports/disabled"}},
      {"infiniband_without_subnet_manager",
       [] { return infiniband_with("2: INIT", "5: LinkUp"); },
       {"ports/no_subnet_manager"}},
      {"infiniband_armed", [] { return infiniband_with("3: ARMED", "5: LinkUp"); }, {"ports/not_active"}},
      {"infiniband_with_one_lane",
       [] { return infiniband_with_rate("100 Gb/sec (1X NDR)"); },
       {"ports/narrow_link"}},
      {"infiniband_with_two_lanes", [] { return infiniband_with_rate("100 Gb/sec (2X HDR)"); }, {}},
      {"infiniband_with_small_mtu", [] { return infiniband_with_mtu(2048); }, {"mtu/below_port_mtu"}},
      {"dgx_of_both_link_layers", of_both_link_layers, {"ports/mixed_link_layers"}},
      {"dgx_with_a_slower_port", with_a_slower_port, {"ports/slower_than_its_like"}},
      {"dgx_with_unreadable_ports", with_unreadable_ports, {"ports/state_unreadable"}},
      {"dgx_without_gids", [] { return with_gids({}); }, {"gids/no_gid"}},
      {"dgx_with_slots_that_cannot_be_read", with_slots_that_cannot_be_read, {"gids/no_gid"}},
      {"dgx_with_link_local_gids",
       [] {
         return with_gids({{link_local_gid, "IB/RoCE v1"}, {link_local_gid, "RoCE v2"}});
       },
       {"gids/only_link_local"}},
      {"dgx_with_ipv4_gid_alone",
       [] {
         return with_gids({{link_local_gid, "RoCE v2"}, {ipv4_gid, "RoCE v2"}});
       },
       {}},
      {"dgx_with_unique_local_gid",
       [] {
         return with_gids(
             {{link_local_gid, "RoCE v2"}, {"fd93:0000:0000:0000:0000:0000:0000:0005", "RoCE v2"}});
       },
       {}},
      {"dgx_with_roce_v1_alone",
       [] {
         return with_gids({{link_local_gid, "IB/RoCE v1"}, {ipv4_gid, "IB/RoCE v1"}});
       },
       {"gids/only_roce_v1"}},
      {"dgx_with_gids_of_a_netdev_that_is_down",
       [] { return with_gids_of("eth0.100", true); },
       {"gids/netdev_down"}},
      {"dgx_with_gids_of_a_netdev_elsewhere",
       [] { return with_gids_of("eth0.100", false); },
       {"gids/netdev_elsewhere"}},
      {"dgx_with_arp_flux", [] { return with_ports_in_one_subnet("0", "0", "0"); }, {"arp/flux"}},
      {"dgx_that_asks_for_others", [] { return with_ports_in_one_subnet("1", "1", "0"); }, {"arp/flux"}},
      {"dgx_with_strict_rp_filter",
       [] { return with_ports_in_one_subnet("1", "2", "1"); },
       {"arp/strict_rp_filter"}},
      {"dgx_with_hidden_arp_settings", [] { return with_ports_in_one_subnet("", "", ""); }, {"arp/unknown"}},
      {"dgx_with_half_hidden_arp_settings", with_settings_of_interfaces_alone, {"arp/unknown"}},
      {"dgx_without_arp_flux", [] { return with_ports_in_one_subnet("1", "2", "2"); }, {}},
      {"dgx_without_arp_flux_by_its_interfaces", with_settings_of_interfaces, {}},
      {"dgx_without_arp_flux_on_one_interface", with_settings_of_one_interface, {"arp/flux"}},
      {"dgx_with_arp_filter", with_arp_filter, {}},
      {"dgx_with_link_local_routes", with_link_local_routes, {}},
      {"dgx_with_mtu_1500", [] { return with_netdev_mtu(1500, 1024); }, {"mtu/small_netdev_mtu"}},
      {"dgx_with_mtu_4191", [] { return with_netdev_mtu(4191, 2048); }, {"mtu/small_netdev_mtu"}},
      {"dgx_with_mtu_4200", [] { return with_netdev_mtu(4200, 4096); }, {}},
      {"dgx_whose_ports_kept_an_old_mtu",
       [] { return with_netdev_mtu(9000, 1024); },
       {"mtu/below_netdev_mtu"}},
      {"dgx_that_loses_packets", [] { return that_counted("out_of_sequence", 7, 9); }, {"counters/loss"}},
      {"dgx_with_timeouts", [] { return that_counted("local_ack_timeout_err", 0, 1); }, {"counters/loss"}},
      {"dgx_with_congestion", [] { return that_counted("np_cnp_sent", 0, 4000); }, {"counters/congestion"}},
      {"dgx_without_receives",
       [] { return that_counted("rnr_nak_retry_err", 0, 3); },
       {"counters/receiver_not_ready"}},
      {"dgx_with_a_bad_cable", [] { return that_counted("symbol_error", 1, 2); }, {"counters/bad_link"}},
      {"dgx_that_lost_packets_once",
       [] { return that_counted("out_of_sequence", 7, 7); },
       {"counters/in_the_past"}},
      {"dgx_whose_counters_were_reset", [] { return that_counted("out_of_sequence", 7, 0); }, {}},
      {"dgx_with_old_losses", [] { return with_counter("packet_seq_err", "12"); }, {"counters/in_the_past"}},
      // A setting, in milliseconds.
      {"dgx_with_another_lifespan", [] { return with_counter("lifespan", "1000"); }, {}},
  };
}

}  // namespace gdrbench::synthetic
