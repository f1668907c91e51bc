#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"

namespace gdrbench::doctor {
namespace {

constexpr const char* node = "dev/infiniband/rdma_cm";
constexpr const char* registered = "sys/class/misc/rdma_cm";  // there as soon as rdma_ucm runs

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "rdma_cm can be used."},
    {"not_loaded", Verdict::warn,
     "The module rdma_ucm is not loaded: programs that connect by rdma_cm (gdrbench --connect rdma_cm, "
     "perftest -R, NVMe over RDMA tools, many MPIs) cannot; the control channel is the way left.",
     "modprobe rdma_ucm"},
    {"node_not_mapped", Verdict::warn,
     "/dev/infiniband/rdma_cm is not mapped into this container: programs cannot connect by rdma_cm; the "
     "control channel is the way left.",
     "docker run --device=/dev/infiniband/rdma_cm …; outside a container: udevadm trigger"},
};

std::vector<Finding> run(const Check& self, const Facts& facts) {
  const topology::Root& root = facts.root;
  if (root.list("sys/class/infiniband").empty()) return {};
  std::vector<Evidence> seen = {presence(root, node)};
  if (root.exists(node)) return {find(self, "ok", "", std::move(seen))};
  seen.push_back(presence(root, registered));
  return {find(self, root.exists(registered) ? "node_not_mapped" : "not_loaded", "", std::move(seen))};
}

}  // namespace

const Check rdma_cm_check = {.name = "rdma_cm",
                             .question = "Can programs connect by rdma_cm?",
                             .looks_at = "/dev/infiniband/rdma_cm, /sys/class/misc/rdma_cm",
                             .layer = Layer::device,
                             .causes = causes,
                             .run = run};

}  // namespace gdrbench::doctor
