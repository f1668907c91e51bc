#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "gdrbench/case.hpp"
#include "gdrbench/path_proof.hpp"
#include "gdrbench/run_result.hpp"

namespace gdrbench::measure {

/// Work that one end does beside a transfer. Tests bring their own.
class LoadSource {
 public:
  virtual ~LoadSource() = default;
  virtual void start() = 0;
  /// Units done since start(); asking does not disturb the work.
  virtual std::uint64_t units() = 0;
  virtual void stop() = 0;
  virtual LoadProof describe() const = 0;
};

/// The GPU's load, null for none. Throws Unavailable, CudaError.
std::unique_ptr<LoadSource> make_load(Load load, int gpu);

/// Runs a load and says how fast it went: alone, before the first run, and together with each run's timed
/// part. All members throw CudaError.
class LoadMeter {
 public:
  struct Times {
    std::chrono::milliseconds settle{50};  ///< for the load's clocks and caches
    std::chrono::milliseconds alone{100};
    std::chrono::milliseconds start_limit{5000};  ///< for the first unit
    std::function<double()> now_s;                ///< steady; the system's clock when empty
    std::function<void(std::chrono::milliseconds)> sleep;
  };
  explicit LoadMeter(std::unique_ptr<LoadSource> source) : LoadMeter(std::move(source), Times{}) {}
  LoadMeter(std::unique_ptr<LoadSource> source, Times times);

  /// Starts the load, with no transfer running, and measures it alone if that was not done before. Throws
  /// Error when it does no work.
  void start();
  /// The timed part begins; a later call begins it anew.
  void begin();
  /// The timed part ends.
  LoadRates end();
  void stop() { source_->stop(); }
  LoadProof describe() const { return source_->describe(); }

 private:
  struct Reading {
    double at_s = 0;
    std::uint64_t units = 0;
  };
  Reading read();
  static double rate_between(const Reading& from, const Reading& to);

  std::unique_ptr<LoadSource> source_;
  Times times_;
  std::optional<double> alone_units_per_second_;
  Reading begun_;
};

}  // namespace gdrbench::measure
