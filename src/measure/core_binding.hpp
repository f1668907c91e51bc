#pragma once

#include <memory>
#include <string>

#include "gdrbench/case.hpp"
#include "gdrbench/path_proof.hpp"
#include "measure/core_choice.hpp"
#include "topology/cores.hpp"
#include "topology/machine.hpp"

namespace gdrbench::measure {

/// What decides for a case on this machine; `gpu_address` is the PCI address of its GPU.
CoreQuestion core_question(const Case& c, const topology::Machine& machine, const std::string& gpu_address,
                           const std::string& allowed_cores);

/// Keeps this process next to the NIC and the GPU of a case while it lives. Made before the case's buffers,
/// so that they lie there too.
class CoreBinding {
 public:
  explicit CoreBinding(const Case& c);
  /// To be called before each run: other cases may have been opened since.
  void renew();
  /// {"0-15", "next to mlx5_0 and GPU 0"}
  BindingProof describe() const;

 private:
  CoreChoice choice_;
  std::unique_ptr<topology::ThreadBinding> binding_;
};

}  // namespace gdrbench::measure
