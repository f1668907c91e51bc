#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/case_fields.hpp"
#include "base/end_fields.hpp"
#include "gdrbench/report.hpp"
#include "report/figures.hpp"

/// What a result file holds under `gdrbench`, as structs with lists of their fields: result_json.cpp fills
/// them in, result_schema.cpp tells their schema.
namespace gdrbench::report {

inline constexpr int result_schema_number = 2;

struct LibraryRecord {
  std::string name, version;
};
struct BuildRecord {
  std::string build_type, compiler, flags;
  bool optimised = false;
  std::vector<LibraryRecord> libraries;
};

struct StagesRecord {
  std::vector<std::optional<StageTimes>> ranks;
  double overlap = 0;
};
struct LoadRecord : LoadRates {
  std::optional<double> loss_pct;
};
struct RepetitionRecord {
  std::optional<LatencySummary> latency_us;
  std::optional<double> bytes_per_second, messages_per_second;
  std::vector<CpuFigures> cpu;
  std::optional<StagesRecord> stages;
  std::optional<std::vector<std::optional<LoadRecord>>> load;
  std::uint64_t iterations = 0, payload_bytes = 0, messages_lost = 0;
  bool verified = false;
  std::string started;
  double duration_s = 0;
};
struct CaseRecord : Case {
  Registration registration = Registration::none;
  std::vector<PathProof> proof;
  std::vector<RepetitionRecord> repetitions;
};

/// What two cases share when they are compared, but for the size.
struct SeriesRecord {
  Suite suite = Suite::latency;
  Op op = Op::send;
  MemoryKind memory = MemoryKind::host;
  CompletionMode completion = CompletionMode::poll;
  std::uint32_t depth = 1, queue_pairs = 1;
  Direction direction = Direction::forward;
  Staging staging = Staging::automatic;
  Load load = Load::none;
  std::string pair;
  std::uint32_t pairs_at_once = 1;
};
struct RatioRecord {
  Path path = Path::gdr, reference = Path::tcp;
  double estimate = 0;
  std::optional<double> low, high;
  std::uint64_t repetitions = 0;
};
struct PointRecord : SeriesRecord {
  std::uint64_t size_bytes = 0;
  Metric metric = Metric::rate;
  std::vector<RatioRecord> ratios;
};
struct CrossoverRecord : SeriesRecord {
  Metric metric = Metric::rate;
  Path path = Path::gdr, reference = Path::tcp;
  std::optional<std::uint64_t> from_bytes;
};
struct ComparisonRecord {
  std::vector<PointRecord> points;
  std::vector<CrossoverRecord> crossovers;
};

struct LocalRepetitionRecord : LocalRepetition {
  std::optional<double> bytes_per_second;
};
struct LocalRecord {
  std::string suite, what;
  Labels labels;
  std::uint64_t size_bytes = 0;
  std::vector<LocalRepetitionRecord> repetitions;
};

struct FileRecord {
  int schema = result_schema_number;
  std::string version, commit;
  BuildRecord build;
  std::string command;
  FabricDescription fabric;
  bool functional = false;
  std::vector<EndInfo> ranks;
  std::vector<CaseRecord> cases;
  std::vector<SkippedPath> skipped;
  ComparisonRecord comparison;
  bool complete = false;
  std::optional<std::string> incomplete_reason;
};
/// What stands beside that only in files that have any of it.
struct OptionalRecord {
  std::optional<std::vector<SkippedPath>> load_skipped;
  std::optional<std::vector<LocalRecord>> local;
  std::optional<std::vector<LocalSkipped>> local_skipped;
  std::optional<std::vector<LocalCrossover>> local_crossovers;
};

}  // namespace gdrbench::report

namespace gdrbench {

inline constexpr Range any_text{0, 1e9L};
inline constexpr Range any_quantity{0, 1e300L};
inline constexpr Range at_least_one{1};

template <>
struct FieldList<report::LibraryRecord> {
  using L = report::LibraryRecord;
  static constexpr auto fields =
      std::tuple(field("name", &L::name, "", any_text), field("version", &L::version, "", any_text));
};

template <>
struct FieldList<report::BuildRecord> {
  using B = report::BuildRecord;
  static constexpr auto fields =
      std::tuple(field("build_type", &B::build_type, "CMake's; none where it was left empty", any_text),
                 field("compiler", &B::compiler, "", any_text),
                 field("flags", &B::flags, "of the C++ compiler", any_text),
                 field("optimised", &B::optimised, "false: the figures are no measure of the paths"),
                 field("libraries", &B::libraries, "whose headers were compiled"));
};

template <>
struct FieldList<FabricDescription> {
  using F = FabricDescription;
  static constexpr auto fields = std::tuple(
      field("kind", &F::kind, ""), field("device", &F::device, "null without one", {0, max_text_bytes}),
      field("link_layer", &F::link_layer, "null without a device", {0, max_text_bytes}),
      field("active_mtu", &F::active_mtu, "bytes", {256, 65'536}),
      field("gid_index", &F::gid_index, "", {-1, max_gid_index}),
      field("link_bytes_per_second", &F::link_bytes_per_second, "nominal rate of the port",
            {0, max_link_bytes_per_second}));
};

template <>
struct FieldList<report::CpuFigures> {
  using C = report::CpuFigures;
  static constexpr Range percent{0, 1e9L}, seconds{0, 1e15L};
  static constexpr auto fields =
      std::tuple(field("user_pct", &C::user_pct, "of one core; the process, all threads", percent),
                 field("system_pct", &C::system_pct, "of one core; the process, all threads", percent),
                 field("thread_pct", &C::thread_pct, "of one core; the measuring thread", percent),
                 field("irq_pct", &C::irq_pct, "of one core; the whole host", percent),
                 field("softirq_pct", &C::softirq_pct, "of one core; the whole host", percent),
                 field("seconds_per_gb", &C::seconds_per_gb,
                       "user and system time of the process by 10^9 bytes", seconds),
                 field("irq_seconds_per_gb", &C::irq_seconds_per_gb,
                       "irq and softirq time of the host by 10^9 bytes", seconds));
};

template <>
struct FieldList<report::StagesRecord> {
  using S = report::StagesRecord;
  static constexpr auto fields =
      std::tuple(field("ranks", &S::ranks, "by rank; null of one that stages nothing"),
                 field("overlap", &S::overlap, "the seconds of all stages by duration_s", any_quantity));
};

template <>
struct FieldList<report::LoadRecord> {
  static constexpr auto fields = std::tuple_cat(
      FieldList<LoadRates>::fields,
      std::tuple(field("loss_pct", &report::LoadRecord::loss_pct,
                       "100 (1 - together / alone); null where nothing was done alone", {-1e15L, 100})));
};

template <>
struct FieldList<report::RepetitionRecord> {
  using R = report::RepetitionRecord;
  static constexpr auto fields = std::tuple(
      field("latency_us", &R::latency_us, "over every sample"),
      field("bytes_per_second", &R::bytes_per_second, "payload_bytes / duration_s", any_quantity),
      field("messages_per_second", &R::messages_per_second, "both directions summed; or round trips",
            any_quantity),
      field("cpu", &R::cpu, "by rank"), field("stages", &R::stages, "of paths that stage, in streams"),
      field("load", &R::load, "the GPU's own work, by rank"),
      field("iterations", &R::iterations, "round trips, or messages in each measured direction",
            at_least_one),
      field("payload_bytes", &R::payload_bytes, "moved in the measured directions"),
      field("messages_lost", &R::messages_lost, "by an unreliable transport, as far as the ranks know"),
      field("verified", &R::verified, "every byte that was checked where it arrived was right"),
      field("started", &R::started, "RFC 3339", any_text),
      field("duration_s", &R::duration_s, "of the timed part", any_quantity));
};

template <>
struct FieldList<report::CaseRecord> {
  using C = report::CaseRecord;
  static constexpr auto fields = std::tuple_cat(
      FieldList<Case>::fields,
      std::tuple(
          field("registration", &C::registration, "how the NIC knows the memory that it works on"),
          field("proof", &C::proof, "by rank: what shows which way the payload took"),
          field("repetitions", &C::repetitions, "in the order they ran, beside those of other paths")));
};

template <>
struct FieldList<report::SeriesRecord> {
  using S = report::SeriesRecord;
  static constexpr auto fields = std::tuple(
      field("suite", &S::suite, ""), field("op", &S::op, ""), field("memory", &S::memory, ""),
      field("completion", &S::completion, ""), field("depth", &S::depth, "", at_least_one),
      field("queue_pairs", &S::queue_pairs, "", at_least_one), field("direction", &S::direction, ""),
      field("staging", &S::staging, "of the paths that stage"), field("load", &S::load, ""),
      field("pair", &S::pair, "", {0, 128}), field("pairs_at_once", &S::pairs_at_once, "", {1, 64}));
};

template <>
struct FieldList<report::RatioRecord> {
  using R = report::RatioRecord;
  static constexpr auto fields = std::tuple(
      field("path", &R::path, ""), field("reference", &R::reference, "that the path is held against"),
      field("estimate", &R::estimate, "geometric mean over pairs of repetitions", any_quantity),
      field("low", &R::low, "of the 95 % interval; null with one repetition", any_quantity),
      field("high", &R::high, "", any_quantity),
      field("repetitions", &R::repetitions, "pairs used", at_least_one));
};

template <>
struct FieldList<report::PointRecord> {
  using P = report::PointRecord;
  static constexpr auto fields =
      std::tuple_cat(FieldList<report::SeriesRecord>::fields,
                     std::tuple(field("size_bytes", &P::size_bytes, "", at_least_one),
                                field("metric", &P::metric, ""), field("ratios", &P::ratios, "")));
};

template <>
struct FieldList<report::CrossoverRecord> {
  using C = report::CrossoverRecord;
  static constexpr auto fields = std::tuple_cat(
      FieldList<report::SeriesRecord>::fields,
      std::tuple(field("metric", &C::metric, ""), field("path", &C::path, ""),
                 field("reference", &C::reference, ""),
                 field("from_bytes", &C::from_bytes,
                       "from this size on the path beats the reference; null: nowhere", at_least_one)));
};

template <>
struct FieldList<report::ComparisonRecord> {
  using C = report::ComparisonRecord;
  static constexpr auto fields =
      std::tuple(field("points", &C::points, ""), field("crossovers", &C::crossovers, ""));
};

template <>
struct FieldList<SkippedPath> {
  static constexpr auto fields =
      std::tuple(field("path", &SkippedPath::path, ""), field("reason", &SkippedPath::reason, "", any_text));
};

template <>
struct FieldList<report::LocalRepetitionRecord> {
  using L = report::LocalRepetitionRecord;
  static constexpr auto fields =
      std::tuple(field("iterations", &L::iterations, "", at_least_one),
                 field("time_us", &L::time_us, "of an iteration, by the host's clock", any_quantity),
                 field("device_time_us", &L::device_time_us, "the same between CUDA events", any_quantity),
                 field("bytes_per_second", &L::bytes_per_second, "of what moves data", any_quantity));
};

template <>
struct FieldList<report::LocalRecord> {
  using L = report::LocalRecord;
  static constexpr auto fields = std::tuple(
      field("suite", &L::suite, "", any_text), field("what", &L::what, "", any_text),
      field("labels", &L::labels, "what tells it from the others", any_text),
      field("size_bytes", &L::size_bytes, "", at_least_one), field("repetitions", &L::repetitions, ""));
};

template <>
struct FieldList<LocalSkipped> {
  using L = LocalSkipped;
  static constexpr auto fields =
      std::tuple(field("suite", &L::suite, "", any_text), field("what", &L::what, "", any_text),
                 field("reason", &L::reason, "", any_text));
};

template <>
struct FieldList<LocalCrossover> {
  using L = LocalCrossover;
  static constexpr auto fields =
      std::tuple(field("suite", &L::suite, "", any_text), field("what", &L::what, "", any_text),
                 field("labels", &L::labels, "", any_text),
                 field("from_bytes", &L::from_bytes,
                       "from this size on it is true, at all larger ones too; null: nowhere", at_least_one));
};

template <>
struct FieldList<report::FileRecord> {
  using F = report::FileRecord;
  static constexpr auto fields = std::tuple(
      field("schema", &F::schema, "grows when a field changes its meaning or goes away"),
      field("version", &F::version, "of gdrbench", any_text), field("commit", &F::commit, "", any_text),
      field("build", &F::build, "of rank 0"), field("command", &F::command, "", any_text),
      field("fabric", &F::fabric, "of rank 0"),
      field("functional", &F::functional, "software stands in for the NIC: no performance figures"),
      field("ranks", &F::ranks, "what each says of its machine"), field("cases", &F::cases, ""),
      field("skipped", &F::skipped, "paths that could not run"), field("comparison", &F::comparison, ""),
      field("complete", &F::complete, "false when the run ended early"),
      field("incomplete_reason", &F::incomplete_reason, "", any_text));
};

template <>
struct FieldList<report::OptionalRecord> {
  using O = report::OptionalRecord;
  static constexpr bool omits_absent = true;
  static constexpr auto fields = std::tuple(
      field("load_skipped", &O::load_skipped, "paths that were measured without a load only"),
      field("local", &O::local, "measured within one node"), field("local_skipped", &O::local_skipped, ""),
      field("local_crossovers", &O::local_crossovers, ""));
};

}  // namespace gdrbench
