#pragma once

#include <cstdint>

#include "base/field_list.hpp"
#include "gdrbench/case.hpp"
#include "gdrbench/run_result.hpp"

/// The fields of a case and of a run, and their ranges: of what a server takes, of the flags that make them,
/// and of the result file.
namespace gdrbench {

// Larger than any machine, small enough that sums and page rounding cannot overflow.
inline constexpr std::uint64_t max_bytes = std::uint64_t{1} << 44;
inline constexpr std::uint64_t min_chunk_bytes = 256;  // in which a queue pair's staging buffers stay small
// What the fabric with the smallest largest-message takes (rxe, 8 MiB), less a header's cache line.
inline constexpr std::uint64_t max_chunk_bytes = (8 << 20) - 64;
inline constexpr std::uint32_t max_staging_slots = 256;
inline constexpr std::uint32_t max_staging_streams = 16;
inline constexpr std::uint32_t max_depth = 4096;
inline constexpr std::uint32_t max_queue_pairs = 1024;
inline constexpr std::uint32_t max_tcp_threads = 64;
inline constexpr std::uint32_t max_inline_bytes = 65'536;
inline constexpr int max_gid_index = 65'535;
inline constexpr int max_gpu = 1023;
inline constexpr std::uint64_t max_iterations = std::uint64_t{1} << 48;
inline constexpr long double max_seconds = 1e9L;

template <>
struct FieldList<StagingOptions> {
  using S = StagingOptions;
  static constexpr auto fields = std::tuple(
      field("variant", &S::variant, "How copies and wire are combined", {}, "--staging"),
      field("engine", &S::engine, "What copies between GPU and staging buffers", {}, "--staging-engine"),
      field("chunk_bytes", &S::chunk_bytes, "Largest piece that staging copies and sends at once",
            {min_chunk_bytes, max_chunk_bytes}),
      field("slots", &S::slots,
            "Chunks in flight each way on a queue pair; 0: what fits 16M, of tcp 4M, or 1M with the payload "
            "in host "
            "memory",
            {0, max_staging_slots}, "--staging-depth"),
      field("streams", &S::streams, "CUDA streams of the copy engine, each way", {1, max_staging_streams},
            "--staging-streams"));
};

// The ranges are those of the fields of the InfiniBand headers and of struct ibv_qp_attr.
template <>
struct FieldList<VerbsOptions> {
  using V = VerbsOptions;
  static constexpr auto fields = std::tuple(
      field("device", &V::device, "RDMA device; empty: chosen", {0, 64}),  // IBV_SYSFS_NAME_MAX
      field("gid_index", &V::gid_index, "null: chosen", {0, max_gid_index}),
      field("port", &V::port, "of the device", {1, 254}),
      field("path_mtu", &V::path_mtu, "Path MTU in bytes, a power of two from 256; 0: the smaller active MTU",
            {0, 4096}, "--mtu"),
      field("timeout", &V::timeout, "Local ACK timeout, 4.096 us x 2^N; 0: none", {0, 31}, "--timeout"),
      field("retry_count", &V::retry_count, "Retries before RETRY_EXC", {0, 7}, "--retry-count"),
      field("rnr_retry", &V::rnr_retry, "Retries on RNR; 7: no limit", {0, 7}, "--rnr-retry"),
      field("min_rnr_timer", &V::min_rnr_timer,
            "Code of the RNR NAK timer (IBTA table 45); 1: 0.01 ms, 0: 655 ms", {0, 31}, "--min-rnr-timer"),
      field("service_level", &V::service_level, "InfiniBand service level", {0, 15}, "--service-level"),
      field("traffic_class", &V::traffic_class, "RoCE traffic class", {0, 255}, "--traffic-class"),
      field("inline_bytes", &V::inline_bytes, "Largest message in bytes that is posted inline",
            {0, max_inline_bytes}, "--inline"),
      field("transport", &V::transport, "Of the queue pairs; uc (unreliable connection) counts lost messages",
            {}, "--transport"),
      field("connect", &V::connect, "Who moves the queue pairs to RTS", {}, "--connect"),
      field("relaxed_ordering", &V::relaxed_ordering, "IBV_ACCESS_RELAXED_ORDERING is asked for"),
      field("registration", &V::registration, "How GPU memory is registered; auto: dmabuf, else peermem", {},
            "--registration"));
};

template <>
struct FieldList<Case> {
  static constexpr auto fields = std::tuple(
      field("suite", &Case::suite, ""), field("path", &Case::path, ""), field("op", &Case::op, ""),
      field("memory", &Case::memory, "where the payload starts and ends"),
      field("completion", &Case::completion, "polling a completion queue, or waiting for its events"),
      field("direction", &Case::direction, "seen from rank 0"),
      field("size_bytes", &Case::size_bytes, "of a message", {1, max_bytes}),
      field("depth", &Case::depth, "messages in flight on each queue pair", {1, max_depth}),
      field("queue_pairs", &Case::queue_pairs, "or sockets", {1, max_queue_pairs}),
      field("footprint_bytes", &Case::footprint_bytes, "payload memory that messages rotate through",
            {0, max_bytes}),
      field("gpu", &Case::gpu, "number of the GPU", {0, max_gpu}),
      field("shares_gpu", &Case::shares_gpu, "all ranks run on one GPU"),
      field("load", &Case::load, "work of the GPUs beside the transfer"),
      field("bind", &Case::bind, "how ranks are bound to cores"),
      field("tcp_threads", &Case::tcp_threads, "that move the sockets of a rank; null: its own choice",
            {0, max_tcp_threads}),
      field("pair", &Case::pair, "NIC and GPU, where several pairs are measured; else empty", {0, 128}),
      field("pairs_at_once", &Case::pairs_at_once, "that the case runs on at the same time", {1, 64}),
      field("staging", &Case::staging, ""), field("verbs", &Case::verbs, ""));
};

template <>
struct FieldList<RunRequest> {
  using R = RunRequest;
  static constexpr auto fields =
      std::tuple(field("iterations", &R::iterations, "", {1, max_iterations}),
                 field("warmup", &R::warmup, "untimed, before them", {0, max_iterations}),
                 field("seed", &R::seed, "of the pattern"));
};

template <>
struct FieldList<CpuUsage> {
  using C = CpuUsage;
  static constexpr auto fields = std::tuple(field("elapsed_s", &C::elapsed_s, "", {0, max_seconds}),
                                            field("user_s", &C::user_s, "", {0, max_seconds}),
                                            field("system_s", &C::system_s, "", {0, max_seconds}),
                                            field("thread_s", &C::thread_s, "", {0, max_seconds}),
                                            field("irq_s", &C::irq_s, "", {0, max_seconds}),
                                            field("softirq_s", &C::softirq_s, "", {0, max_seconds}));
};

template <>
struct FieldList<StageTimes> {
  using S = StageTimes;
  static constexpr auto fields = std::tuple(
      field("gpu_to_host_s", &S::gpu_to_host_s, "copying to staging buffers", {0, max_seconds}),
      field("wire_s", &S::wire_s, "posted and not yet completed, where the rank posts", {0, max_seconds}),
      field("host_to_gpu_s", &S::host_to_gpu_s, "copying from staging buffers", {0, max_seconds}));
};

template <>
struct FieldList<LoadRates> {
  using L = LoadRates;
  static constexpr auto fields = std::tuple(
      field("alone_units_per_second", &L::alone_units_per_second, "without a transfer", {0, 1e18L}),
      field("together_units_per_second", &L::together_units_per_second, "beside the transfer", {0, 1e18L}));
};

template <>
struct FieldList<LatencySummary> {
  using L = LatencySummary;
  static constexpr auto fields =
      std::tuple(field("min", &L::min, "", {0, 1e15L}), field("mean", &L::mean, "", {0, 1e15L}),
                 field("p50", &L::p50, "", {0, 1e15L}), field("p90", &L::p90, "", {0, 1e15L}),
                 field("p99", &L::p99, "", {0, 1e15L}), field("p99_9", &L::p99_9, "", {0, 1e15L}),
                 field("p99_99", &L::p99_99, "", {0, 1e15L}), field("max", &L::max, "", {0, 1e15L}));
};

/// As the control channel carries it: samples stay where they were taken.
template <>
struct FieldList<RankResult> {
  using R = RankResult;
  static constexpr auto fields = std::tuple(
      field("elapsed_s", &R::elapsed_s, "timed part, by this rank's clock", {0, max_seconds}),
      field("messages_sent", &R::messages_sent, ""), field("messages_received", &R::messages_received, ""),
      field("messages_lost", &R::messages_lost,
            "that the rank knows of; only unreliable transports lose any"),
      field("cpu", &R::cpu, ""), field("stages", &R::stages, ""), field("latency_us", &R::latency_us, ""),
      field("load", &R::load, ""));
};

}  // namespace gdrbench
