#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <list>
#include <map>
#include <mutex>
#include <vector>

#include "fake_cuda.hpp"
#include "fake_cuda_state.hpp"

namespace gdrbench::softverbs {
namespace fake {

FAKE_CUDA_ENTRY std::uint64_t fake_cuda_allocate(std::size_t bytes, Kind kind) {
  const std::lock_guard lock(state().mutex);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t whole = (bytes + page - 1) / page * page;
  if (whole > arena_bytes - state().used) return 0;
  const std::uint64_t address = state().arena + state().used;
  state().used += whole;
  state().allocations[address] = {bytes, kind};
  if (!state().allocations[address].on_device())
    mprotect(reinterpret_cast<void*>(address), whole, PROT_READ | PROT_WRITE);
  return address;
}

FAKE_CUDA_ENTRY void fake_cuda_free(std::uint64_t address) {
  const std::lock_guard lock(state().mutex);
  state().allocations.erase(address);
}

FAKE_CUDA_ENTRY std::byte* fake_cuda_bytes(std::uint64_t address) {
  return state().inside(address);
}

FAKE_CUDA_ENTRY void fake_cuda_counters(Counters* counters) {
  const std::lock_guard lock(state().mutex);
  *counters = state().counters;
}

FAKE_CUDA_ENTRY void fake_cuda_fail_copy(int nth) {
  const std::lock_guard lock(state().mutex);
  state().copies_until_failure = nth;
}

FAKE_CUDA_ENTRY void fake_cuda_refuse_pinned(bool refuse) {
  const std::lock_guard lock(state().mutex);
  state().refuse_pinned = refuse;
}

FAKE_CUDA_ENTRY void fake_cuda_make_old(bool old) {
  const std::lock_guard lock(state().mutex);
  state().old = old;
}

FAKE_CUDA_ENTRY void fake_cuda_deinitialize(bool gone) {
  const std::lock_guard lock(state().mutex);
  state().gone = gone;
}

FAKE_CUDA_ENTRY void fake_cuda_enter_program_context() {
  context_stack = {&program_context};
}

FAKE_CUDA_ENTRY bool fake_cuda_in_program_context() {
  return context_stack == std::vector<cuda::Context>{&program_context} && capture_mode == 0;
}

FAKE_CUDA_ENTRY void fake_cuda_destroy_context(Kind kind) {
  const std::lock_guard lock(state().mutex);
  const cuda::Context context = owner_of({1, kind});
  state().other_context_gone = context == &other_context;
  std::erase_if(state().allocations, [&](const auto& entry) { return owner_of(entry.second) == context; });
  std::erase_if(state().pinned, [&](const auto& entry) {
    if (entry.second.context != context) return false;
    std::free(reinterpret_cast<void*>(entry.first));
    return true;
  });
  streams().remove_if([&](const cuda::StreamTag& stream) { return stream.context == context; });
}

FAKE_CUDA_ENTRY void fake_cuda_reset() {
  const std::lock_guard lock(state().mutex);
  state().allocations.clear();
  mprotect(reinterpret_cast<void*>(state().arena), arena_bytes, PROT_NONE);
  state().used = 0;
  state().counters = {};
  state().copies_until_failure = 0;
  state().refuse_pinned = state().gone = state().old = state().other_context_gone = false;
}

}  // namespace fake
}  // namespace gdrbench::softverbs
