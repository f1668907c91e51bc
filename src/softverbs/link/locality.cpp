#include "link/locality.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>

namespace gdrbench::softverbs {
namespace {

// The magic in front makes it unlikely that a remote finds the pattern at a known address of some other
// process.
struct Proof {
  std::array<char, 8> magic = hello_magic;
  std::uint64_t cookie = 0;
  bool operator==(const Proof&) const = default;
};

const Proof& our_proof() {
  static const Proof proof = [] {
    Proof made;
    if (getrandom(&made.cookie, sizeof made.cookie, 0) != sizeof made.cookie) {
      throw std::system_error(errno, std::generic_category(), "softverbs: getrandom");
    }
    return made;
  }();
  return proof;
}

std::array<char, 40> boot_id() {
  std::array<char, 40> id{};
  const Descriptor file(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (!file || read(file.get(), id.data(), id.size() - 1) < 36) return {};
  return id;
}

// 0 where /proc is lacking or is that of another PID namespace: then /proc/PID would be another process.
std::uint64_t pid_namespace() {
  std::array<char, 16> self{};
  if (readlink("/proc/self", self.data(), self.size() - 1) <= 0) return 0;
  struct stat status {};
  if (std::atoi(self.data()) != getpid() || stat("/proc/self/ns/pid", &status) != 0) return 0;
  return status.st_ino;
}

void let_others_read_us() {
  static std::atomic<pid_t> done_for{0};  // a child does not inherit it
  if (done_for.exchange(getpid()) == getpid()) return;
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // fails without Yama, where it is not needed
}

}  // namespace

Locality our_locality(int doorbell, int rings) {
  let_others_read_us();
  Locality here;
  here.boot_id = boot_id();
  here.pid_namespace = pid_namespace();
  here.pid = getpid();
  here.doorbell = doorbell;
  here.rings = rings;
  here.cookie_address = reinterpret_cast<std::uint64_t>(&our_proof());
  here.cookie = our_proof().cookie;
  return here;
}

bool is_near(const Locality& remote) {
  return remote.pid > 0 && remote.pid_namespace != 0 && remote.pid_namespace == pid_namespace() &&
         remote.boot_id.front() != '\0' && remote.boot_id == boot_id();
}

Descriptor open_descriptor(int pid, int number, mode_t type) {
  if (number < 0) return {};
  const std::string there = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(number);
  const Descriptor found(open(there.c_str(), O_PATH | O_CLOEXEC));
  struct stat status {};
  if (!found || fstat(found.get(), &status) != 0 || (status.st_mode & S_IFMT) != type) return {};
  const std::string here = "/proc/self/fd/" + std::to_string(found.get());
  return Descriptor(open(here.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
}

RemoteProcess reach(const Locality& remote, bool proven) {
  RemoteProcess process;
  process.pid = remote.pid;
  Proof found{};
  const Proof expected{hello_magic, remote.cookie};
  process.readable =
      copy_from_process(remote.pid, remote.cookie_address, &found, sizeof found) == 0 && found == expected;
  // Open for reading too, though we never read: without a reader a write raises SIGPIPE, which is the
  // program's.
  if (process.readable || proven) process.doorbell = open_descriptor(remote.pid, remote.doorbell, S_IFIFO);
  return process;
}

int copy_from_process(int pid, std::uint64_t remote_address, void* local, std::size_t length) {
  // Whoever polls the last bytes of a message in memory must not see them before the rest.
  const std::size_t tail = std::min<std::size_t>(length, 8);
  for (std::size_t done = 0; done < length;) {
    const std::size_t before_tail = done < length - tail ? length - tail - done : 0;
    iovec to{static_cast<std::byte*>(local) + done, length - done};
    const std::uint64_t begin = remote_address + done;
    iovec from[2] = {{reinterpret_cast<void*>(begin), before_tail},
                     {reinterpret_cast<void*>(begin + before_tail), length - done - before_tail}};
    const bool has_front = before_tail != 0;
    // Not by its name: sanitizers intercept that and take the copy for an access of this thread, where it
    // stands for a device's, which they do not see.
    const ssize_t copied =
        syscall(SYS_process_vm_readv, pid, &to, 1UL, has_front ? from : from + 1, has_front ? 2UL : 1UL, 0UL);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0) return errno;
    if (copied == 0) return EFAULT;
    done += std::size_t(copied);
  }
  return 0;
}

}  // namespace gdrbench::softverbs
