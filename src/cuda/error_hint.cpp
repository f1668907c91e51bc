#include "cuda/error_hint.hpp"

#include <algorithm>
#include <iterator>

#include "base/error_text.hpp"

namespace gdrbench::cuda {
namespace {

struct Hint {
  int code;
  const char* text;
  const char* check = "";
};

// Numbers of enum cudaError, which builds without the CUDA Toolkit lack.
constexpr Hint hints[] = {
    {2, "look at what else uses the GPU's memory (nvidia-smi), or use smaller sizes"},
    {3,
     "the driver could not start: is its kernel module loaded, of the version of its library, and is "
     "/dev/nvidia-uvm here?",
     "driver"},
    {35, "the driver is older than this build's CUDA: update it, or build with an older CUDA Toolkit",
     "driver"},
    {46, "another process has the GPU for itself: see nvidia-smi -q -d COMPUTE"},
    {100, "no GPU is visible: is one mapped into this container? look at nvidia-smi and CUDA_VISIBLE_DEVICES",
     "driver"},
    {101, "there is no GPU of this number: see nvidia-smi -L and CUDA_VISIBLE_DEVICES"},
    {209, "this build has no code for that GPU: set CMAKE_CUDA_ARCHITECTURES"},
    {214, "the GPU's memory has an error that cannot be corrected: see nvidia-smi -q -d ECC", "kernel_log"},
    {304, "an operating system call failed: see ulimit -n, free memory, and the mode of /dev/nvidia*",
     "driver"},
    {700, "an access outside GPU memory; Xid messages in the kernel log tell more", "kernel_log"},
    {719, "a kernel ended by a fault; Xid messages in the kernel log tell more", "kernel_log"},
    {801, "GPU or driver do not offer this", "gpu"},
    {802,
     "the GPUs of this machine are not ready: on machines with NVSwitch the fabric manager has to run, in "
     "the "
     "driver's version (systemctl status nvidia-fabricmanager)",
     "driver"},
    {803,
     "the driver's library and its kernel module are of different versions: load the module again or reboot; "
     "in a container, map the host's libraries",
     "driver"},
    {804,
     "this GPU does not take CUDA's forward-compatibility package: remove cuda-compat from LD_LIBRARY_PATH, "
     "or "
     "update the driver",
     "driver"},
    {999, "often /dev/nvidia-uvm is missing (modprobe nvidia-uvm), or the GPU was lost; see the kernel log",
     "kernel_log"},
};

}  // namespace

std::string error_hint(int code) {
  const auto* const found =
      std::find_if(std::begin(hints), std::end(hints), [code](const Hint& one) { return one.code == code; });
  return found == std::end(hints) ? "" : found->text + confirm_with(found->check);
}

}  // namespace gdrbench::cuda
