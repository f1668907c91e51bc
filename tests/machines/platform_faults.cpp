#include "machines/faults.hpp"
#include "machines/healthy.hpp"

namespace gdrbench::machines {
namespace {

Machine without_peermem() {
  Machine machine = dgx();
  machine.tree.remove("sys/module/nvidia_peermem");
  machine.remove_module("nvidia_peermem");
  return machine;
}

Machine in_a_container_without_modules() {
  Machine machine = without_peermem();
  machine.tree.remove("proc/modules");
  return machine;
}

}  // namespace

std::vector<Known> platform_faults() {
  return {{"dgx_without_peermem", without_peermem, {"peermem/not_loaded"}},
          {"dgx_without_proc_modules", in_a_container_without_modules, {"peermem/unknown"}}};
}

}  // namespace gdrbench::machines
