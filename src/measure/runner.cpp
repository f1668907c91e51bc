#include "measure/runner.hpp"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "gdrbench/error.hpp"
#include "gdrbench/size.hpp"
#include "measure/core_binding.hpp"
#include "measure/path_runner.hpp"
#include "path/direct.hpp"
#include "path/staged.hpp"
#include "wire/ipc_wire.hpp"
#include "wire/tcp_wire.hpp"
#include "wire/verbs_wire.hpp"

namespace gdrbench::measure {
namespace {

// A plain write raises no completion at its target: staged paths poll for a flag, direct ones for the last
// byte.
bool target_polls_memory(const Case& c) {
  return c.op == Op::write && (is_staged(c.path) || path::polls_for_writes(c));
}

// The data may not become visible in another order than it was written in where memory tells of its arrival.
bool arrival_is_seen_in_payload(const Case& c) {
  return spec(c.suite).arrival == ArrivalBy::memory && !is_staged(c.path);
}

// "send, write, write_imm"
std::string names_of(OpSet ops) {
  std::string names;
  for (const auto& [op, name] : EnumNames<Op>::names)
    if (contains(ops, op)) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

void refuse_outside_suite(const Case& c) {
  const SuiteSpec& suite = spec(c.suite);
  if (suite.timing == Timing::message && c.queue_pairs != 1)
    throw UsageError("case.queue_pairs: a ping-pong has one");
  if (!contains(suite.ops, c.op))
    throw Unavailable(
        fmt::format("the {} suite has no {}: there is no other end to see the data arrive; use --op {}",
                    suite.name, to_string(c.op), names_of(suite.ops)));
  if (!suite.has_events && c.completion == CompletionMode::event)
    throw Unavailable(
        "that data are visible is seen by polling memory, so there is no event to wait for; use "
        "--completion poll");
  if (c.load == Load::none) return;
  if (!suite.has_load) throw UsageError(fmt::format("case.load: the {} suite has no load", suite.name));
  if (c.memory == MemoryKind::host || is_baseline(c.path))
    throw Unavailable("a load beside the transfer needs GPU memory, and the payload is in host memory");
}

// Before anything else of it, so that the reason is the same with and without a GPU.
void refuse_outside_path(const Case& c) {
  const PathSpec& path = spec(c.path);
  if (!contains(path.ops, c.op))
    throw Unavailable(
        fmt::format("the {} path has no {}; use --op {}", path.name, to_string(c.op), names_of(path.ops)));
  if (path.needs_cuda && c.memory != MemoryKind::cuda)
    throw Unavailable(fmt::format("the {} path is from GPU to GPU, in cudaMalloc memory; --memory is {}",
                                  path.name, to_string(c.memory)));
  if (!path.has_events && c.completion == CompletionMode::event)
    throw Unavailable(fmt::format(
        "the {} path has no completion events: its copies are polled for; use --completion poll", path.name));
}

// Operations that this combination of path, memory and completion cannot express; see docs/methodology.md.
void refuse_impossible(const Case& c) {
  refuse_outside_suite(c);
  refuse_outside_path(c);
  if (!target_polls_memory(c)) return;
  if (c.completion == CompletionMode::event)
    throw Unavailable(
        "a plain write raises no completion at its target, so there is no event to wait for; use "
        "--completion poll, or --op send or write_imm");
  if (!is_staged(c.path) && c.memory != MemoryKind::host && !is_baseline(c.path))
    throw Unavailable(
        "the target of a plain write finds it by polling memory, which the CPU cannot do in GPU memory; use "
        "another --op: " +
        names_of(static_cast<OpSet>(spec(c.path).ops & ~(Op::write | Op::write))));
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
                    c.queue_pairs, format_size(path::staging_layout(c).chunk_bytes),
                    format_size(bounce_bytes(c)), format_size(most_bytes)));
}

// Nothing that was asked for by name is replaced.
void refuse_without_gpu_memory(const Case& c) {
  if (c.memory != MemoryKind::host || is_baseline(c.path)) return;
  if (is_staged(c.path) && c.staging.engine != CopyEngine::automatic)
    throw Unavailable(
        fmt::format("--staging-engine {} applies only to GPU memory, and the payload is in host memory",
                    to_string(c.staging.engine)));
  if (!is_staged(c.path) && uses_verbs(c.path) && c.verbs.registration != RegisterBy::automatic)
    throw Unavailable(
        fmt::format("--registration {} applies only to GPU memory, and the payload is in host memory",
                    to_string(c.verbs.registration)));
}

std::unique_ptr<Runner> over_ipc(const Case& c, Role role, Payload& payload) {
  using Direct = path::Direct<wire::IpcWire>;
  return std::make_unique<PathRunner<wire::IpcWire, Direct>>(c, role, payload, c.gpu, Direct::wire_limits(c));
}

// What runs a policy over a wire.
struct Factory {
  WireKind wire;
  Policy policy;
  std::unique_ptr<Runner> (*make)(const Case&, Role, Payload&);
};
constexpr Factory factories[] = {
    {WireKind::tcp, Policy::staged, over_tcp<path::Staged<wire::TcpWire>>},
    {WireKind::tcp, Policy::direct, over_tcp<path::Direct<wire::TcpWire>>},
    {WireKind::verbs, Policy::staged, over_verbs<path::Staged<wire::VerbsWire>>},
    {WireKind::verbs, Policy::direct, over_verbs<path::Direct<wire::VerbsWire>>},
    {WireKind::ipc, Policy::direct, over_ipc},
};

std::unique_ptr<Runner> make_path_runner(const Case& c, Role role, Payload& payload) {
  for (const Factory& factory : factories)
    if (factory.wire == spec(c.path).wire && factory.policy == spec(c.path).policy)
      return factory.make(c, role, payload);
  throw UsageError(fmt::format("path {}: nothing runs this policy over this wire", to_string(c.path)));
}

/// A runner that is made, and runs, on the cores next to its NIC and GPU.
class BoundRunner final : public Runner {
 public:
  BoundRunner(const Case& c, const std::function<std::unique_ptr<Runner>()>& make)
      : binding_(c), runner_(make()) {}

  nlohmann::json offer() override { return runner_->offer(); }
  void connect(std::vector<RankLink> ranks) override { runner_->connect(std::move(ranks)); }
  void prepare(const RunRequest& request) override {
    binding_.renew();
    runner_->prepare(request);
  }
  RankResult run(Watch& watch) override { return runner_->run(watch); }
  std::string verify() override { return runner_->verify(); }
  PathProof describe() override {
    PathProof proof = runner_->describe();
    proof.binding = binding_.describe();
    return proof;
  }

 private:
  CoreBinding binding_;  ///< outlives the runner, whose threads end on these cores
  std::unique_ptr<Runner> runner_;
};

}  // namespace

std::unique_ptr<Runner> make_runner(const Case& c, Role role, Payload& payload) {
  refuse_impossible(c);
  refuse_without_gpu_memory(c);
  refuse_huge_bounce(c);
  return std::make_unique<BoundRunner>(c, [&] { return make_path_runner(c, role, payload); });
}

}  // namespace gdrbench::measure
