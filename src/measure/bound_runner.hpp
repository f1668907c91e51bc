#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "measure/core_binding.hpp"
#include "measure/runner.hpp"

namespace gdrbench::measure {

/// A runner that is made, and runs, on the cores next to its NIC and GPU.
class BoundRunner final : public Runner {
 public:
  BoundRunner(const Case& c, const std::function<std::unique_ptr<Runner>()>& make)
      : binding_(c), runner_(make()) {}

  nlohmann::json offer() override { return runner_->offer(); }
  void connect(const nlohmann::json& peer_offer, std::vector<wire::Socket> sockets) override {
    runner_->connect(peer_offer, std::move(sockets));
  }
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

}  // namespace gdrbench::measure
