#include <fmt/format.h>

#include <optional>
#include <utility>

#include "doctor/check.hpp"
#include "doctor/checks/checks.hpp"
#include "doctor/facts/rdma_ports.hpp"
#include "verbs/memory_region.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause ends_causes[] = {
    {"ok", Verdict::ok, "Both ends match."},
    {"link_layers_differ", Verdict::fail,
     "No active ports of both ends have the same link layer: one has InfiniBand, the other Ethernet (RoCE), "
     "and they cannot reach each other.",
     "connect ports of one link layer; a VPI NIC can be configured by mlxconfig -d <pci> set LINK_TYPE_P1=…",
     "mlxconfig takes effect after a reset of the NIC, which ends all connections through it"},
    {"fabrics_differ", Verdict::fail,
     "One end has an RDMA NIC, the other soft-RoCE only. They may exchange packets, but gdrbench measures "
     "one fabric only.",
     "start both ends with --fabric softverbs, or give both a NIC"},
    {"gid_versions_differ", Verdict::fail,
     "One end would use a RoCE v2 GID, the other has RoCE v1 only: neither responds to the other "
     "(RETRY_EXC).",
     "gdrbench doctor --check gids at the end that has v1 only"},
    {"gid_families_differ", Verdict::fail,
     "One end would use an IPv4 GID, the other an IPv6 one: there is no route from one to the other.",
     "give the netdevs of both ends addresses of one family, or choose such GIDs by --gid-index"},
    {"link_local_meets_global", Verdict::warn,
     "One end has only a link-local GID, the other would use a routable one: they reach each other on one "
     "subnet at best.",
     "ip address add <address>/<length> dev <netdev>, at the end that has none"},
    {"path_mtu_differs", Verdict::warn,
     "The active path MTUs of both ends differ. gdrbench uses the smaller one; programs that use their own "
     "end's fail with LOC_LEN or RETRY_EXC.",
     "set the same MTU for the netdevs of both ends and the switches between them",
     "if a switch on the path does not carry such frames, large messages are lost"},
    {"gpu_memory_at_one_end", Verdict::warn,
     "GPU memory can be registered at one end only, so gdr between GPUs is not possible.",
     "run gdrbench doctor --check registration at the other end; or measure with --memory host"},
    {"drivers_differ", Verdict::info,
     "The NVIDIA driver versions of both ends differ. That is allowed; a difference between directions may "
     "come from it.",
     ""},
    {"firmware_differs", Verdict::info,
     "The NICs of both ends have different firmware. That is allowed; a difference between directions may "
     "come from it.",
     ""},
};

}  // namespace

const Check ends_check = {
    .name = "ends",
    .question = "Do both ends match?",
    .looks_at =
        "of both ends: the first active ports of one kind, their link layer, fabric, GID and active MTU; "
        "whether GPU memory can be registered; versions of driver and firmware",
    .layer = Layer::port,
    .causes = ends_causes,
    .run = [](const Check&, const Facts&) { return std::vector<Finding>{}; }};

namespace {

using topology::Root;

// Active ports that the tool can use, hardware before soft-RoCE.
std::vector<RdmaPort> usable_ports(const Root& root) {
  std::vector<RdmaPort> usable;
  const std::vector<RdmaPort> ports = rdma_ports(root);
  for (const Transport transport : {Transport::infiniband, Transport::soft_roce})
    for (const RdmaPort& port : ports)
      if (port.is_active() && port.transport == transport) usable.push_back(port);
  return usable;
}

using PortPair = std::pair<RdmaPort, RdmaPort>;

// The first two of one kind; where there are none, the first of each end.
std::optional<PortPair> port_pair(const std::vector<RdmaPort>& local, const std::vector<RdmaPort>& remote) {
  if (local.empty() || remote.empty()) return std::nullopt;
  for (const RdmaPort& port : local)
    for (const RdmaPort& other : remote)
      if (port.transport == other.transport && port.link_layer == other.link_layer)
        return PortPair(port, other);
  return PortPair(local.front(), remote.front());
}

int active_mtu(const Facts& facts, const RdmaPort& port) {
  for (const RdmaAnswer& device : facts.answers.rdma)
    for (const PortAnswer& answer : device.ports)
      if (device.device == port.device && answer.number == port.number && answer.active_mtu > 0)
        return answer.active_mtu;
  if (!port.is_roce()) return 0;
  const auto mtu = facts.root.number("sys/class/net/" + netdev_of(facts.root, port) + "/mtu");
  const int overhead = port.transport == Transport::soft_roce ? rxe_overhead_bytes : hardware_overhead_bytes;
  return path_mtu(mtu.value_or(0), overhead);
}

// Absent without a GPU, or where nobody asked CUDA or the NIC.
std::optional<bool> takes_gpu_memory(const Facts& facts, const RdmaPort& port) {
  const verbs::Loaded peermem = verbs::peermem_loaded(facts.root.folder());
  std::optional<int> probe;
  for (const RdmaAnswer& device : facts.answers.rdma)
    if (device.device == port.device) probe = device.dmabuf_probe;
  std::optional<bool> any;
  for (const GpuAnswer& gpu : facts.answers.gpus) {
    if (!gpu.gpu_direct_rdma || !gpu.dmabuf || (*gpu.dmabuf && !probe)) continue;
    const verbs::GpuRegistrationAdvice advice =
        verbs::advise({.gpu_direct_rdma = *gpu.gpu_direct_rdma,
                       .gpu_dmabuf = *gpu.dmabuf,
                       .peermem = peermem == verbs::Loaded::unknown ? verbs::Loaded::no : peermem,
                       .dmabuf_probe = probe});
    any = any.value_or(false) || advice.way != Registration::none;
  }
  return any;
}

struct EndFacts {
  const Facts* facts;
  const char* where;
  RdmaPort port;
  std::optional<Gid> gid;

  EndFacts(const Facts& known, const char* place, const RdmaPort& taken)
      : facts(&known), where(place), port(taken), gid(chosen_gid(gid_table(known.root, taken))) {}

  Evidence says(const std::string& what, const std::string& value) const {
    return {fmt::format("{}, {}: {}", where, port.subject(), what), value};
  }
};

std::string_view differing_gids(const Gid& a, const Gid& b) {
  const auto is_v1 = [](const Gid& gid) { return gid.entry.type == verbs::GidType::roce_v1; };
  const auto is_ipv4 = [](const Gid& gid) { return verbs::is_ipv4_mapped(gid.entry.gid); };
  const auto is_local = [](const Gid& gid) { return verbs::is_link_local(gid.entry.gid); };
  if (is_v1(a) != is_v1(b)) return "gid_versions_differ";
  if (is_local(a) != is_local(b)) return "link_local_meets_global";
  return is_ipv4(a) != is_ipv4(b) ? "gid_families_differ" : "";
}

class Comparison {
 public:
  Comparison(const EndFacts& here, const EndFacts& there) : here_(here), there_(there) {}

  std::vector<Finding> take() {
    if (!reachable()) return std::move(findings_);
    path_mtu_pair();
    gpu_memory();
    versions();
    if (findings_.empty()) {
      const Finding ok = find(ends_check, "ok", subject(), {});
      findings_.push_back(ok);
    }
    return std::move(findings_);
  }

 private:
  std::string subject() const {
    return fmt::format("{} here, {} there", here_.port.subject(), there_.port.subject());
  }
  void add(std::string_view cause, const std::string& what, const std::string& local,
           const std::string& remote) {
    findings_.push_back(
        find(ends_check, cause, subject(), {here_.says(what, local), there_.says(what, remote)}));
  }

  // False when no packet of one end reaches the other, of which the rest would only be a consequence.
  bool reachable() {
    if (here_.port.link_layer != there_.port.link_layer) {
      add("link_layers_differ", "link_layer", here_.port.link_layer, there_.port.link_layer);
      return false;
    }
    if (here_.port.transport != there_.port.transport) {
      const auto name = [](const EndFacts& end) {
        return end.port.transport == Transport::soft_roce ? "soft-roce" : "hardware";
      };
      add("fabrics_differ", "fabric", name(here_), name(there_));
      return false;
    }
    if (here_.port.is_roce() && there_.port.is_roce() && here_.gid && there_.gid)
      if (const std::string_view cause = differing_gids(*here_.gid, *there_.gid); !cause.empty())
        add(cause, "GID", text_of(*here_.gid), text_of(*there_.gid));
    return true;
  }

  static std::string text_of(const Gid& gid) {
    return fmt::format("{}, RoCE {}", verbs::to_ip(gid.entry.gid),
                       gid.entry.type == verbs::GidType::roce_v1 ? "v1" : "v2");
  }

  void path_mtu_pair() {
    const int local = active_mtu(*here_.facts, here_.port), remote = active_mtu(*there_.facts, there_.port);
    if (local > 0 && remote > 0 && local != remote)
      add("path_mtu_differs", "active MTU", std::to_string(local), std::to_string(remote));
  }

  void gpu_memory() {
    const auto local = takes_gpu_memory(*here_.facts, here_.port);
    const auto remote = takes_gpu_memory(*there_.facts, there_.port);
    if (local && remote && *local != *remote)
      add("gpu_memory_at_one_end", "takes GPU memory", *local ? "yes" : "no", *remote ? "yes" : "no");
  }

  void versions() {
    differ("drivers_differ", "sys/module/nvidia/version", "sys/module/nvidia/version");
    const auto folder = [](const EndFacts& end) { return "sys/class/infiniband/" + end.port.device; };
    const auto model = [&](const EndFacts& end) {
      return end.facts->root.read(folder(end) + "/board_id", 128).text;
    };
    if (model(here_) == model(there_))
      differ("firmware_differs", folder(here_) + "/fw_ver", folder(there_) + "/fw_ver");
  }

  void differ(std::string_view cause, const std::string& local_file, const std::string& remote_file) {
    const std::string local = here_.facts->root.read(local_file, 128).text;
    const std::string remote = there_.facts->root.read(remote_file, 128).text;
    if (!local.empty() && !remote.empty() && local != remote) add(cause, "/" + local_file, local, remote);
  }

  const EndFacts& here_;
  const EndFacts& there_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> compare_ends(const Facts& here, const Facts& there) {
  const auto ports = port_pair(usable_ports(here.root), usable_ports(there.root));
  if (!ports) return {};
  const EndFacts local(here, "here", ports->first), remote(there, "there", ports->second);
  return Comparison(local, remote).take();
}

}  // namespace gdrbench::doctor
