#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/options.hpp"

namespace gdrbench::cli {

/// The flags of the measuring commands as they were typed; turned into options, with our own error texts,
/// afterwards.
struct MeasureFlags {
  std::string host;
  bool loopback = false;
  std::optional<int> port;
  std::string key_file;
  std::string out, samples;

  std::vector<std::string> paths, required, ops, directions, completions, loads;
  std::vector<std::string> pairs, remote_pairs;
  std::optional<std::string> sizes, memory, footprint,
      chunk;  ///< given but empty is a fault, not the default
  std::string fabric = "auto", bind = "auto";
  bool no_relaxed_ordering = false;
  benchmarks::MeasureOptions options;  ///< what CLI11 reads straight into place
};

/// The flags that these suites have a use for.
void add_measure_flags(CLI::App& command, MeasureFlags& flags, const std::vector<Suite>& suites);

/// Throws UsageError.
benchmarks::MeasureOptions read_measure_flags(const MeasureFlags& flags);

}  // namespace gdrbench::cli
