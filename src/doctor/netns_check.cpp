#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "doctor/rdma_nics.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "All network namespaces share the RDMA devices."},
    {"exclusive", Verdict::info,
     "Each network namespace has RDMA devices of its own (netns mode exclusive): a container sees only those "
     "that were moved into it.",
     ""},
    {"hidden", Verdict::fail,
     "No RDMA device is in this network namespace: the netns mode is exclusive, so devices of the host are "
     "hidden here.",
     "on the host: rdma dev set <device> netns <namespace>; or rdma system set netns shared, for which no "
     "other network namespace may exist; or run in the host's network (docker run --network host)",
     "a device that is moved is gone from the host until the container ends"},
};

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const topology::FileText mode = facts.root.read(netns_mode_file, 8);
  if (mode.text.empty()) return {};
  const Evidence seen = evidence(facts.root, netns_mode_file);
  if (!netns_is_exclusive(facts.root)) return {find(self, "ok", "", {seen})};
  return {find(self, hidden_by_netns(facts) ? "hidden" : "exclusive", "",
               {seen, presence(facts.root, "sys/class/infiniband")})};
}

}  // namespace

const Check netns_check = {.name = "netns",
                           .question = "Are the RDMA devices of the host visible in this network namespace?",
                           .looks_at = "/sys/module/ib_core/parameters/netns_mode, /sys/class/infiniband",
                           .layer = Layer::device,
                           .causes = causes,
                           .run = run};

}  // namespace gdrbench::doctor
