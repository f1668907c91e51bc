#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "link/link.hpp"
#include "link/stream_socket.hpp"

namespace gdrbench::softverbs {

/// Where a process runs and how to reach into it; of use only where `boot_id` and `pid_namespace` are ours.
struct Locality {
  std::array<char, 40> boot_id{};   ///< /proc/sys/kernel/random/boot_id
  std::uint64_t pid_namespace = 0;  ///< inode of /proc/self/ns/pid
  std::int32_t pid = 0;
  std::int32_t doorbell = -1;  ///< descriptor number there
  std::int32_t rings = -1;     ///< descriptor number there of a sealed memfd with two RingMemory; −1: none
  std::int32_t pad = 0;
  std::uint64_t cookie_address = 0;  ///< where in that process `cookie` lies
  std::uint64_t cookie = 0;          ///< random; proves that it is the right process
};

/// How a process of this host reaches into this one. Lets processes of the same user read our memory
/// (PR_SET_PTRACER_ANY), which Yama otherwise reserves to our ancestors. Where /proc does not tell about our
/// process, the result is near to nobody.
Locality our_locality(int doorbell, int rings);

/// Whether the numbers in it (process, descriptors) mean the same here as there.
bool is_near(const Locality& remote);

/// Descriptor `number` of that process opened anew for reading and writing; none where that is not allowed,
/// or where it is not of that type (S_IFREG, S_IFIFO): opening a device can do things.
Descriptor open_descriptor(int pid, int number, mode_t type);

/// What can be reached of a process that is near. It is believed to be that process when its cookie can be
/// read, or when it is `proven` otherwise.
RemoteProcess reach(const Locality& remote, bool proven);

/// Copies `length` bytes from another process's memory to ours, the last 8 last. 0, or an errno value: EFAULT
/// where the range is not mapped there, ESRCH where the process is gone, EPERM where it is not ours to read.
int copy_from_process(int pid, std::uint64_t remote_address, void* local, std::size_t length);

}  // namespace gdrbench::softverbs
