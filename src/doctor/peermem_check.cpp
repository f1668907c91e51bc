#include "doctor/check_list.hpp"
#include "verbs/gpu_registration.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "A peer-memory module is loaded."},
    {"no_gpu", Verdict::ok, "There is no NVIDIA GPU whose memory could be registered."},
    {"not_loaded", Verdict::warn,
     "No peer-memory module is loaded, so ibv_reg_mr on GPU memory fails with EFAULT; registration as "
     "dma-buf is "
     "the only way left.",
     "modprobe nvidia-peermem; echo nvidia-peermem >/etc/modules-load.d/nvidia-peermem.conf",
     "none; the module comes with NVIDIA's driver"},
    {"unknown", Verdict::unknown, "Whether a peer-memory module is loaded cannot be seen here.",
     "run the doctor outside the container, where /proc/modules can be read"},
};

Evidence seen(const topology::Root& root, const std::string& path) {
  return {"/" + path, std::string(to_string(root.state(path)))};
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  if (facts.machine.gpus.empty()) return {find(self, "no_gpu", "", {})};
  std::vector<Evidence> evidence = {seen(facts.root, "sys/module/nvidia_peermem/version"),
                                    seen(facts.root, "sys/kernel/mm/memory_peers/nv_mem/version"),
                                    seen(facts.root, "proc/modules")};
  switch (verbs::peermem_loaded(facts.root.folder())) {
    case verbs::Loaded::yes:
      return {find(self, "ok", "", std::move(evidence))};
    case verbs::Loaded::no:
      return {find(self, "not_loaded", "", std::move(evidence))};
    case verbs::Loaded::unknown:
      break;
  }
  return {find(self, "unknown", "", std::move(evidence))};
}

}  // namespace

const Check peermem_check = {
    .name = "peermem",
    .question = "Can the RDMA driver ask NVIDIA's driver for GPU memory?",
    .looks_at = "/sys/module/nvidia_peermem, /sys/kernel/mm/memory_peers, /proc/modules",
    .layer = Layer::driver,
    .causes = causes,
    .run = run};

}  // namespace gdrbench::doctor
