#pragma once

#include <memory>
#include <string>

#include "gdrbench/case.hpp"
#include "gdrbench/path_proof.hpp"
#include "topology/cores.hpp"
#include "topology/machine.hpp"

/// On which cores a rank runs: next to the NIC and the GPU of its case.
namespace gdrbench::measure {

/// All that decides on which cores an end of a case runs. Cores are lists, "0-15,32-47".
struct CoreQuestion {
  BindBy bind = BindBy::automatic;
  std::string nic, nic_cores;  ///< "mlx5_0"; no cores for a device that no PCI function is behind
  std::string gpu, gpu_cores;  ///< "GPU 0"; none where the payload is in host memory
  std::string machine_cores;   ///< that this process could have
  std::string allowed_cores;   ///< that it has
};

struct CoreChoice {
  bool bound = false;
  std::string cores;  ///< what the end runs on, bound or not
  std::string why;    ///< "next to mlx5_0 and GPU 0", "not bound: …"
};

/// The cores next to NIC and GPU, else to the NIC, else to the GPU. Not bound where the user has bound the
/// process already, where all cores are as near, or where too few are near for the work of an end.
CoreChoice choose_cores(const CoreQuestion& question);

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
