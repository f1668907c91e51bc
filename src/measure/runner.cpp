#include "measure/runner.hpp"

#include <fmt/format.h>

#include "gdrbench/error.hpp"
#include "gdrbench/size.hpp"
#include "measure/bound_runner.hpp"
#include "measure/path_runner.hpp"
#include "path/direct.hpp"
#include "path/staged.hpp"
#include "wire/ipc_wire.hpp"
#include "wire/tcp_wire.hpp"
#include "wire/verbs_wire.hpp"

namespace gdrbench::measure {
namespace {

bool target_polls_memory(const Case& c) {
  return c.op == Op::write && (is_staged(c.path) || c.suite == Suite::latency);
}

// The data may not become visible in another order than it was written in where memory tells of its arrival.
bool arrival_is_seen_in_payload(const Case& c) {
  return c.suite == Suite::visible && !is_staged(c.path);
}

void refuse_impossible_visible(const Case& c) {
  if (c.queue_pairs != 1) throw UsageError("case.queue_pairs: a ping-pong has one");
  if (c.op == Op::read)
    throw Unavailable(
        "a read brings its data to the end that asks for it, so there is no other end to see them arrive; "
        "use --op send, write or write_imm");
  if (c.completion == CompletionMode::event)
    throw Unavailable(
        "that data are visible is seen by polling memory, so there is no event to wait for; use "
        "--completion poll");
}

void refuse_impossible_load(const Case& c) {
  if (c.suite != Suite::overlap) throw UsageError("case.load: the overlap suite alone has a load");
  if (c.memory == MemoryKind::host || is_baseline(c.path))
    throw Unavailable("a load beside the transfer needs GPU memory, and the payload is in host memory");
}

// Before anything else of it, so that the reason is the same with and without a GPU.
void refuse_over_ipc(const Case& c) {
  if (c.op == Op::send || c.op == Op::write_imm)
    throw Unavailable("the peer path moves data by write and read; use --op write or read");
  if (c.suite == Suite::latency && c.op == Op::write)
    throw Unavailable(
        "the target of a plain write finds it by polling memory, which the CPU cannot do in GPU memory; the "
        "latency of the peer path is that of --op read");
  if (c.memory != MemoryKind::cuda)
    throw Unavailable(fmt::format("the peer path is from GPU to GPU, in cudaMalloc memory; --memory is {}",
                                  to_string(c.memory)));
  if (c.completion == CompletionMode::event)
    throw Unavailable(
        "the peer path has no completion events: its copies are polled for; use --completion poll");
}

// Operations that this combination of path, memory and completion cannot express; see docs/methodology.md.
void refuse_impossible(const Case& c) {
  if (c.suite == Suite::visible) refuse_impossible_visible(c);
  if (c.load != Load::none) refuse_impossible_load(c);
  if (c.path == Path::peer) return refuse_over_ipc(c);
  if (target_polls_memory(c) && c.completion == CompletionMode::event)
    throw Unavailable(
        "a plain write raises no completion at its target, so there is no event to wait for; use "
        "--completion poll, or --op send or write_imm");
  if (target_polls_memory(c) && !is_staged(c.path) && c.memory != MemoryKind::host && !is_baseline(c.path))
    throw Unavailable(
        "the target of a plain write finds it by polling memory, which the CPU cannot do in GPU memory; use "
        "--op send or write_imm");
}

template <class P>
std::unique_ptr<Runner> over_tcp(const Case& c, Role role, Payload& payload) {
  auto runner = std::make_unique<PathRunner<wire::TcpWire, P>>(c, role, payload, P::wire_limits(c));
  runner->use_load(make_load(c.load, c.gpu));
  return runner;
}

template <class P>
std::unique_ptr<Runner> over_verbs(const Case& c, Role role, Payload& payload) {
  if (const std::string why = wire::unsupported_op(c.verbs, c.op); !why.empty()) throw Unavailable(why);
  const auto cm_role = role == Role::initiator ? wire::VerbsWireRole::active : wire::VerbsWireRole::passive;
  VerbsOptions options = c.verbs;
  // What the target polls must not become visible before what was written ahead of it.
  if (target_polls_memory(c) || arrival_is_seen_in_payload(c)) options.relaxed_ordering = false;
  auto runner =
      std::make_unique<PathRunner<wire::VerbsWire, P>>(c, role, payload, options, P::wire_limits(c), cm_role);
  runner->use_load(make_load(c.load, c.gpu));
  return runner;
}

// Slots of the size of a chunk, on every queue pair, can exceed any machine.
void refuse_huge_bounce(const Case& c) {
  constexpr std::uint64_t most_bytes = std::uint64_t{2} << 30;
  if (bounce_bytes(c) > most_bytes)
    throw Unavailable(
        fmt::format("staging {} queue pairs in chunks of {} would take {} of bounce memory at each end, more "
                    "than {}; use a "
                    "smaller --chunk or --staging-depth, or fewer --queue-pairs",
                    c.queue_pairs, format_size(path::bounce_layout(c).chunk_bytes),
                    format_size(bounce_bytes(c)), format_size(most_bytes)));
}

// Nothing that was asked for by name is replaced.
void refuse_without_gpu_memory(const Case& c) {
  if (c.memory != MemoryKind::host) return;
  if (is_staged(c.path) && c.staging.engine != CopyEngine::automatic)
    throw Unavailable(
        fmt::format("--staging-engine {} copies from and to GPU memory, and the payload is in host memory",
                    to_string(c.staging.engine)));
  if (c.path == Path::gdr && c.verbs.registration != RegisterBy::automatic)
    throw Unavailable(fmt::format("--registration {} is of GPU memory, and the payload is in host memory",
                                  to_string(c.verbs.registration)));
}

std::unique_ptr<Runner> make_path_runner(const Case& c, Role role, Payload& payload) {
  switch (c.path) {
    case Path::tcp:
      return over_tcp<path::Staged<wire::TcpWire>>(c, role, payload);
    case Path::tcp_wire:
      return over_tcp<path::Direct<wire::TcpWire>>(c, role, payload);
    case Path::rdma:
      return over_verbs<path::Staged<wire::VerbsWire>>(c, role, payload);
    case Path::gdr:
    case Path::rdma_wire:
      return over_verbs<path::Direct<wire::VerbsWire>>(c, role, payload);
    case Path::peer:
      return std::make_unique<PathRunner<wire::IpcWire, path::Direct<wire::IpcWire>>>(
          c, role, payload, c.gpu, path::Direct<wire::IpcWire>::wire_limits(c));
  }
  throw UsageError("unknown path");
}

}  // namespace

std::unique_ptr<Runner> make_runner(const Case& c, Role role, Payload& payload) {
  refuse_impossible(c);
  refuse_without_gpu_memory(c);
  refuse_huge_bounce(c);
  return std::make_unique<BoundRunner>(c, [&] { return make_path_runner(c, role, payload); });
}

}  // namespace gdrbench::measure
