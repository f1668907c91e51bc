#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gdrbench/case.hpp"
#include "gdrbench/end_info.hpp"
#include "gdrbench/path_proof.hpp"
#include "gdrbench/run_result.hpp"
#include "gdrbench/version.hpp"

/// What becomes of results: the JSON result file, the table for humans, the dump of raw samples.
namespace gdrbench {

/// The network that the verbs paths ran on.
struct FabricDescription {
  FabricKind kind = FabricKind::none;
  std::optional<std::string> device{};      ///< "mlx5_0"
  std::optional<std::string> link_layer{};  ///< "InfiniBand" or "Ethernet"
  std::optional<std::uint32_t> active_mtu;  ///< bytes
  std::optional<int> gid_index;
  std::optional<double> link_bytes_per_second;  ///< nominal rate of the port
};

/// A case with everything that was measured of it.
struct CaseResult {
  Case test_case;
  Registration registration = Registration::none;
  std::vector<PathProof> proofs;       ///< by rank
  std::vector<RunResult> repetitions;  ///< in the order they ran; paired with those of other paths
};

/// A repetition of what one end measures by itself: means over its iterations.
struct LocalRepetition {
  std::uint64_t iterations = 0;
  double time_us = 0;                    ///< of one iteration, by this host's clock
  std::optional<double> device_time_us;  ///< the same between CUDA events
};

/// Something measured within one end, without a remote.
struct LocalResult {
  std::string suite;  ///< "registration", "p2p"
  std::string what;   ///< "register", "copy"
  std::vector<std::pair<std::string, std::string>>
      labels;  ///< what tells it from the others: {"memory", "cuda"}
  std::uint64_t size_bytes = 0;
  bool moves_data = false;  ///< a rate can be told
  std::vector<LocalRepetition> repetitions;
};

struct LocalSkipped {
  std::string suite;
  std::string what;  ///< "cuda_vmm dmabuf"
  std::string reason;
};

/// The smallest measured size from which on, at all larger ones too, something is true; absent: nowhere.
struct LocalCrossover {
  std::string suite;
  std::string what;  ///< "register and deregister below copy"
  std::vector<std::pair<std::string, std::string>> labels;
  std::optional<std::uint64_t> from_bytes;
};

struct SkippedPath {
  Path path = Path::gdr;
  std::string reason;
};

/// Everything a result file holds.
struct ResultDocument {
  std::string command;  ///< the command line as it was given
  FabricDescription fabric;
  std::vector<EndInfo> ranks;  ///< what each says of its machine; the initiator is rank 0
  std::vector<CaseResult> cases;
  std::vector<SkippedPath> skipped;
  std::vector<SkippedPath> load_skipped;  ///< paths that ran, but without the load that was asked for
  std::vector<LocalResult> local;
  std::vector<LocalSkipped> local_skipped;
  std::vector<LocalCrossover> local_crossovers;
  bool complete = false;
  std::string incomplete_reason;  ///< "interrupted", "time budget of 60 s used up", …; empty when complete
  nlohmann::json context = nlohmann::json::object();    ///< as Google Benchmark writes it
  nlohmann::json benchmarks = nlohmann::json::array();  ///< as Google Benchmark writes it
};

/// The result file, schema 2: docs/json.md explains it, docs/result.schema.json checks it.
nlohmann::ordered_json to_json(const ResultDocument& document);

/// The JSON Schema of that, as docs/result.schema.json has it. Under `x-gdrbench` it carries what is known of
/// paths, suites, metrics and fabrics, for those who check or plot result files. Ends in '\n'.
std::string result_schema();

struct TableOptions {
  std::string title{};        ///< "gdrbench compare node-b"
  std::string remote{};       ///< host of the responder; left out when empty
  std::string result_file{};  ///< named in the last line; left out when empty
  std::string note{};         ///< a sentence below the table; left out when empty
  std::size_t width = 100;    ///< columns that text is wrapped to
  bool optimised =
      build_info.optimised;  ///< whether figures of this build are any; said below the table if not
};

/// The paths side by side, one row a figure, medians over the repetitions, with the ratio of the most direct
/// path to the next. Lines end in '\n'.
std::string comparison_table(const ResultDocument& document, const TableOptions& options);

/// One row a case: percentiles, or rates, with the CPU cost of both ends. A block for each suite.
std::string suite_table(const ResultDocument& document, const TableOptions& options);

/// What was measured without a remote: a block for each suite, one row for all that shares labels and size,
/// then crossovers and what was skipped. Empty without any.
std::string local_blocks(const ResultDocument& document, std::size_t width = 100);

/// The same with head and foot, for a document that holds nothing else.
std::string local_table(const ResultDocument& document, const TableOptions& options);

/// Writes a file that is complete or absent: into a temporary file of the same folder, synced, then renamed.
/// Missing parent folders are made; a device or a pipe is written to directly. Throws SystemError
/// (ExitStatus::failed) that names the path and the remedy, and leaves neither a partial nor a temporary
/// file.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Tries, ahead of a long run, what write_file_atomically will do; makes missing parent folders and leaves
/// nothing else. Throws UsageError with the text that the writing would have failed with.
void check_writable(const std::filesystem::path& path);

/// Every latency sample as CSV with the header
/// `suite,path,op,memory,completion,size_bytes,repetition,index,latency_ns`; repetition and index count from
/// 0. Written like write_file_atomically, without holding the text in memory.
void write_samples(const std::filesystem::path& path, const ResultDocument& document);

}  // namespace gdrbench
