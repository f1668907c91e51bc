#include "verbs/check.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstring>

#include "base/error_text.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::verbs {
namespace {

/// What usually causes an errno value, and the doctor's check that would see it.
struct Cause {
  std::string text;
  std::string_view check = "";
};

// The limit of this process: limits.conf does not reach launchers that already run.
std::string memlock_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{} bytes", limit.rlim_cur);
}

Cause cgroup_limit() {
  return {"the cgroup's limit of RDMA objects (rdma.max) is reached", "rdma_cgroup"};
}

Cause of_host_registration(int errno_value) {
  switch (errno_value) {
    case EFAULT:
      return {"the range is not mapped in this process, or not writable"};
    case ENOMEM:
      return {fmt::format(
                  "the locked-memory limit of this process is {}: raise it (ulimit -l unlimited) where the "
                  "process is started; or the NIC is out of memory keys",
                  memlock_limit()),
              "memlock"};
    case EINVAL:
      return {fmt::format("an empty range, or (rdma_rxe of older kernels) more than the locked-memory limit, "
                          "{}",
                          memlock_limit()),
              "memlock"};
    case EAGAIN:
      return cgroup_limit();
    default:
      return {};
  }
}

Cause of_gpu_registration(int errno_value, FabricKind fabric) {
  if (fabric == FabricKind::soft_roce)
    return {
        "soft-RoCE takes no GPU memory: it has neither dma-buf memory regions nor GPUDirect RDMA; use the "
        "staged paths, or --fabric softverbs",
        "soft_roce"};
  switch (errno_value) {
    case EFAULT:
      return {
          "no peer-memory client claims the range: load nvidia-peermem, check that the GPU supports "
          "GPUDirect RDMA and that its BAR1 is larger than the request",
          "peermem"};
    case ENOMEM:
      return {
          fmt::format("the NIC is out of memory keys, the GPU's BAR1 is full, or the locked-memory limit of "
                      "this process ({}) does not allow it",
                      memlock_limit()),
          "bar1"};
    case EINVAL:
      return {"range not aligned to host pages, or GPU memory made of several segments", "registration"};
    case EPROTONOSUPPORT:
      return {"the kernel lacks dma-buf memory regions (needs 5.12 or later)", "dmabuf"};
    case EOPNOTSUPP:
      return {"the provider of this NIC lacks dma-buf memory regions", "dmabuf"};
    case EBADF:
      return {"the dma-buf descriptor is closed"};
    case EAGAIN:
      return cgroup_limit();
    default:
      return {};
  }
}

Cause of_open(int errno_value) {
  switch (errno_value) {
    case EPERM:
    case EACCES:
      return {
          "the mode of /dev/infiniband/uverbs* or the device cgroup forbids it: join the rdma group, or "
          "pass the device into the container",
          "rdma_devices"};
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return {"/dev/infiniband/uverbs* is not mapped into this container, or the driver was unloaded",
              "rdma_devices"};
    case EAGAIN:
      return cgroup_limit();
    default:
      return {};
  }
}

Cause of_create(int errno_value) {
  switch (errno_value) {
    case ENOMEM:
      return {fmt::format(
                  "too many or too deep queues for the device, or the locked-memory limit ({}) is too low",
                  memlock_limit()),
              "memlock"};
    case EINVAL:
      return {"the device does not allow that depth or inline size"};
    case EAGAIN:
      return cgroup_limit();
    default:
      return {};
  }
}

Cause of_modify(int errno_value) {
  switch (errno_value) {
    case ETIMEDOUT:
      return {
          "the neighbour was not resolved: a link-local GID, or the remote address is not reachable from "
          "this port; choose another GID index",
          "gids"};
    case EINVAL:
      return {"GID index, path MTU or rd_atomic depth not accepted by this port", "gids"};
    case ENODEV:
      return {"the GID's netdev is gone, or in another network namespace", "gids"};
    case ENETUNREACH:
    case EHOSTUNREACH:
      return {"no route from this port's netdev to the remote GID", "gids"};
    default:
      return {};
  }
}

Cause of_connect(int errno_value) {
  switch (errno_value) {
    case ENODEV:
    case EADDRNOTAVAIL:
      return {"no RDMA device has this address: rdma_cm needs an IP address on the device's netdev", "gids"};
    case ENOENT:
    case EACCES:
    case EPERM:
      return {
          "/dev/infiniband/rdma_cm is missing or not allowed: load rdma_ucm, or map the device into the "
          "container",
          "rdma_cm"};
    case ENETUNREACH:
    case EHOSTUNREACH:
      return {"no route to the remote RDMA address", "gids"};
    case ETIMEDOUT:
      return {
          "check that the remote end's RDMA address answers (ping it from this port's netdev) and that UDP "
          "4791 "
          "is open",
          "gids"};
    case ECONNREFUSED:
      return {"nothing listens on that RDMA address any more: look at the remote process's output"};
    default:
      return {};
  }
}

Cause usual_cause(Step step, int errno_value, FabricKind fabric) {
  switch (step) {
    case Step::open:
      return of_open(errno_value);
    case Step::create:
      return of_create(errno_value);
    case Step::register_host_memory:
      return of_host_registration(errno_value);
    case Step::register_gpu_memory:
      return of_gpu_registration(errno_value, fabric);
    case Step::modify_queue_pair:
      return of_modify(errno_value);
    case Step::connect:
      return of_connect(errno_value);
    case Step::use:
      return {"the device was removed or reset", "kernel_log"};
  }
  return {};
}

}  // namespace

std::string hint(Step step, int errno_value, FabricKind fabric) {
  const Cause cause = usual_cause(step, errno_value, fabric);
  return cause.text + confirm_with(cause.check);
}

std::string explain_in_part(Step step, int errno_value, FabricKind fabric) {
  const char* description = strerrordesc_np(errno_value);
  const std::string cause = usual_cause(step, errno_value, fabric).text;
  return fmt::format("{} ({}){}{}", errno_name(errno_value), description != nullptr ? description : "unknown",
                     cause.empty() ? "" : "; ", cause);
}

std::string explain(Step step, int errno_value) {
  return explain_in_part(step, errno_value) +
         confirm_with(usual_cause(step, errno_value, FabricKind::hardware).check);
}

void throw_system_error(Step step, int errno_value, const std::string& tried) {
  throw SystemError(errno_value, tried, hint(step, errno_value));
}

}  // namespace gdrbench::verbs
