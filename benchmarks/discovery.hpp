#pragma once

#include <string>
#include <vector>

#include "benchmarks/options.hpp"
#include "gdrbench/report.hpp"
#include "gdrbench/session.hpp"

namespace gdrbench::benchmarks {

/// What can be measured between the two ends.
struct Discovery {
  MemoryKind memory = MemoryKind::host;
  std::string memory_note;  ///< why it is not GPU memory; empty when it is, or when it was asked for
  bool shares_gpu = false;  ///< both ends run on one GPU
  FabricDescription fabric;
  std::string device, remote_device;
  std::string device_note;  ///< why this one of several; empty where there was no choice
  int gpu = 0, remote_gpu = 0;
  std::vector<Path> paths;  ///< those that run, in the order asked for
  std::vector<SkippedPath> skipped;
  std::vector<SkippedPath> load_skipped;  ///< those that run, but without the load that was asked for
};

/// Finds the devices, and tries every path that was asked for by opening a small case over it: nothing is
/// promised that was not tried, and nothing falls back. Throws Unavailable when a required path cannot run or
/// none can.
Discovery discover(Session& session, const EndInfo& this_end, const MeasureOptions& options);

/// What discover() is to be asked for each pair of --pairs: the options with the pair's devices and GPUs,
/// which are at the other end those of --remote-pairs, else for named pairs the ones of the same name, else
/// chosen as here. One entry, the options themselves, without --pairs. Throws Unavailable where an end has no
/// such device or GPU, or too few pairs.
std::vector<MeasureOptions> options_by_pair(const EndInfo& here, const EndInfo& there,
                                            const MeasureOptions& options);

}  // namespace gdrbench::benchmarks
