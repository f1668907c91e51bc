#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "benchmarks/options.hpp"

namespace gdrbench::cli {

/// The flags of the measuring commands as they were typed; turned into options, with our own error texts,
/// afterwards.
struct MeasureFlags {
  std::string host;
  bool loopback = false;
  int port = 0;
  std::string key_file;
  std::string out, samples;

  std::vector<std::string> paths, required, ops, directions, completions;
  std::string sizes, memory, fabric = "auto", footprint, chunk;
  std::string staging = "pipelined", connect = "control";
  std::string inline_bytes;
  bool no_relaxed_ordering = false;
  benchmarks::MeasureOptions options;  ///< what CLI11 reads straight into place
};

void add_measure_flags(CLI::App& command, MeasureFlags& flags, bool has_bandwidth);

/// Throws UsageError.
benchmarks::MeasureOptions read_measure_flags(const MeasureFlags& flags);

}  // namespace gdrbench::cli
