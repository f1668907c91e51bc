#include "verbs/check.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstring>

#include "gdrbench/error.hpp"

namespace gdrbench::verbs {
namespace {

// The limit of this process: limits.conf does not reach launchers that already run.
std::string memlock_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{} bytes", limit.rlim_cur);
}

std::string registration_hint(int errno_value, bool on_gpu) {
  switch (errno_value) {
    case EFAULT:
      if (!on_gpu) return "the range is not mapped in this process, or not writable";
      return "no peer-memory client claims the range: load nvidia-peermem, check that the GPU supports "
             "GPUDirect "
             "RDMA and that its BAR1 is larger than the request";
    case ENOMEM:
      return fmt::format(
          "the locked-memory limit of this process is {}: raise it (ulimit -l unlimited) where the "
          "process is started; or the NIC is out of memory keys",
          memlock_limit());
    case EINVAL:
      if (!on_gpu) return "an empty range, or (old rdma_rxe) too little memory to lock";
      return "range not aligned to host pages, or GPU memory made of several segments";
    case EPROTONOSUPPORT:
      return "the kernel lacks dma-buf memory regions (needs 5.12 or later)";
    case EOPNOTSUPP:
      return "the provider of this NIC lacks dma-buf memory regions";
    case EBADF:
      return "the dma-buf descriptor is closed";
    default:
      return "";
  }
}

std::string open_hint(int errno_value) {
  switch (errno_value) {
    case EPERM:
    case EACCES:
      return "the mode of /dev/infiniband/uverbs* or the device cgroup forbids it: join the rdma group, or "
             "pass the "
             "device into the container";
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return "/dev/infiniband/uverbs* is not mapped into this container, or the driver was unloaded";
    default:
      return "";
  }
}

std::string create_hint(int errno_value) {
  switch (errno_value) {
    case ENOMEM:
      return fmt::format(
          "too many or too deep queues for the device, or the locked-memory limit ({}) is too low",
          memlock_limit());
    case EINVAL:
      return "the device does not allow that depth or inline size";
    default:
      return "";
  }
}

std::string modify_hint(int errno_value) {
  switch (errno_value) {
    case ETIMEDOUT:
      return "the neighbour was not resolved: a link-local GID, or the peer's address is not reachable from "
             "this "
             "port; choose another GID index";
    case EINVAL:
      return "GID index, path MTU or rd_atomic depth not accepted by this port";
    case ENETUNREACH:
    case EHOSTUNREACH:
      return "no route from this port's netdev to the peer's GID";
    default:
      return "";
  }
}

std::string connect_hint(int errno_value) {
  switch (errno_value) {
    case ENODEV:
    case EADDRNOTAVAIL:
      return "no RDMA device has this address: rdma_cm needs an IP address on the device's netdev";
    case ENOENT:
    case EACCES:
    case EPERM:
      return "/dev/infiniband/rdma_cm is missing or not allowed: load rdma_ucm, or map the device into the "
             "container";
    case ENETUNREACH:
    case EHOSTUNREACH:
      return "no route to the peer's RDMA address";
    case ETIMEDOUT:
      return "check that the peer's RDMA address answers (ping it from this port's netdev) and that UDP 4791 "
             "is open";
    default:
      return "";
  }
}

}  // namespace

std::string hint(Step step, int errno_value) {
  switch (step) {
    case Step::open:
      return open_hint(errno_value);
    case Step::create:
      return create_hint(errno_value);
    case Step::register_host_memory:
      return registration_hint(errno_value, false);
    case Step::register_gpu_memory:
      return registration_hint(errno_value, true);
    case Step::modify_queue_pair:
      return modify_hint(errno_value);
    case Step::connect:
      return connect_hint(errno_value);
  }
  return "";
}

std::string explain(Step step, int errno_value) {
  const char* description = strerrordesc_np(errno_value);
  const std::string cause = hint(step, errno_value);
  return fmt::format("{} ({}){}{}", errno_name(errno_value), description != nullptr ? description : "unknown",
                     cause.empty() ? "" : "; ", cause);
}

void throw_system_error(Step step, int errno_value, const std::string& tried) {
  throw SystemError(errno_value, tried, hint(step, errno_value));
}

}  // namespace gdrbench::verbs
