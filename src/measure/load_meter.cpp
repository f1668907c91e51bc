#include "measure/load_meter.hpp"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "cuda/device.hpp"
#include "cuda/resident.hpp"
#include "gdrbench/error.hpp"
#include "measure/loops.hpp"

namespace gdrbench::measure {
namespace {

class GpuSource final : public LoadSource {
 public:
  GpuSource(Load load, int gpu)
      : kind_(load),
        uuid_(cuda::device_info(gpu).uuid),
        load_(gpu, load == Load::compute ? cuda::LoadKind::compute : cuda::LoadKind::memory) {}

  void start() override { load_.start(); }
  std::uint64_t units() override { return load_.units(); }
  void stop() override { load_.stop(); }
  LoadProof describe() const override {
    return {.kind = kind_, .blocks = static_cast<std::uint32_t>(load_.blocks()), .gpu_uuid = uuid_};
  }

 private:
  Load kind_;
  std::string uuid_;
  cuda::GpuLoad load_;
};

}  // namespace

std::unique_ptr<LoadSource> make_load(Load load, int gpu) {
  if (load == Load::none) return nullptr;
  return std::make_unique<GpuSource>(load, gpu);
}

LoadMeter::LoadMeter(std::unique_ptr<LoadSource> source, Times times)
    : source_(std::move(source)), times_(std::move(times)) {
  if (!times_.now_s) times_.now_s = [] { return now_us() * 1e-6; };
  if (!times_.sleep) times_.sleep = [](std::chrono::milliseconds span) { std::this_thread::sleep_for(span); };
}

void LoadMeter::start() {
  using namespace std::chrono_literals;
  source_->start();
  const double begun_s = times_.now_s();
  while (source_->units() == 0) {
    if (times_.now_s() - begun_s > std::chrono::duration<double>(times_.start_limit).count())
      throw Error("the GPU's load has not begun: does another process keep this GPU busy?");
    times_.sleep(1ms);
  }
  if (alone_units_per_second_) return;
  times_.sleep(times_.settle);
  const Reading from = read();
  times_.sleep(times_.alone);
  alone_units_per_second_ = rate_between(from, read());
}

void LoadMeter::begin() {
  begun_ = read();
}

LoadRates LoadMeter::end() {
  return {.alone_units_per_second = alone_units_per_second_.value_or(0),
          .together_units_per_second = rate_between(begun_, read())};
}

LoadMeter::Reading LoadMeter::read() {
  return {.at_s = times_.now_s(), .units = source_->units()};
}

double LoadMeter::rate_between(const Reading& from, const Reading& to) {
  const double elapsed_s = to.at_s - from.at_s;
  return elapsed_s > 0 ? static_cast<double>(to.units - from.units) / elapsed_s : 0;
}

}  // namespace gdrbench::measure
