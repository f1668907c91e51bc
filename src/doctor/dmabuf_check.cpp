#include <fmt/format.h>

#include <cerrno>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "doctor/host.hpp"
#include "doctor/kernel_modules.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Version first_kernel{.major = 5, .minor = 12};

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "GPU and RDMA device both know dma-bufs."},
    {"old_kernel", Verdict::warn,
     "The kernel's RDMA subsystem does not register dma-bufs: Linux 5.12 was the first that does.",
     "update the kernel to 5.12 or later, install NVIDIA's DOCA-OFED, or use nvidia-peermem"},
    {"provider", Verdict::warn, "The driver of this RDMA device does not register dma-bufs.",
     "update the kernel and rdma-core, or use nvidia-peermem; soft-RoCE has no dma-bufs at all"},
    {"proprietary_driver", Verdict::warn,
     "The GPU exports no dma-buf, because NVIDIA's proprietary kernel modules are loaded.",
     "install the open kernel modules (package nvidia-open, or nvidia-open-kernel-dkms of Debian) and reboot",
     "they serve Turing and later GPUs only"},
    {"gpu", Verdict::warn,
     "The GPU exports no dma-buf: that takes a Turing or later GPU and a driver of 515 or later with its "
     "open kernel modules.",
     "update NVIDIA's driver and choose the open kernel modules, or use nvidia-peermem"},
    {"old_cuda", Verdict::warn,
     "The driver does not know the attribute DMA_BUF_SUPPORTED: it is older than CUDA 11.7.",
     "update NVIDIA's driver to 515 or later (open kernel modules), or use nvidia-peermem"},
    {"not_probed", Verdict::unknown, "Whether this RDMA device takes dma-bufs was not found out.",
     "run gdrbench doctor on the machine itself, as a user who may open /dev/infiniband/uverbs*"},
};

std::string_view gpu_side(const GpuAnswer& gpu, const topology::Root& root) {
  if (!gpu.gpu_direct_rdma.value_or(true)) return "";  // unsupported, with or without dma-buf
  if (!gpu.dmabuf) return gpu.gpu_direct_rdma ? "old_cuda" : "";
  if (*gpu.dmabuf) return "";
  const topology::FileText version = root.read("proc/driver/nvidia/version", 4 << 10);
  const bool is_proprietary =
      version.present() && version.text.find("Open Kernel Module") == std::string::npos;
  return is_proprietary ? "proprietary_driver" : "gpu";
}

std::string errno_text(int errno_value) {
  switch (errno_value) {
    case EBADF:
      return "EBADF: supported";
    case EPROTONOSUPPORT:
      return "EPROTONOSUPPORT";
    case EOPNOTSUPP:
      return "EOPNOTSUPP";
    default:
      return fmt::format("errno {}", errno_value);
  }
}

void look_at_gpus(const Check& self, const Facts& facts, std::vector<Finding>& findings) {
  for (const GpuAnswer& gpu : facts.answers.gpus)
    if (const std::string_view cause = gpu_side(gpu, facts.root); !cause.empty())
      findings.push_back(
          find(self, cause, "GPU " + gpu.pci_address,
               {{"CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED", gpu.dmabuf ? "0" : "unknown to CUDA"},
                evidence(facts.root, "proc/driver/nvidia/version")}));
}

void look_at_rdma(const Check& self, const Facts& facts, std::vector<Finding>& findings) {
  const std::string release = kernel_release(facts.root);
  const std::optional<Version> kernel = version_in(release);
  std::vector<Evidence> refused;
  for (const RdmaAnswer& device : facts.answers.rdma) {
    // One that cannot be opened is the finding of another check.
    if (device.fabric != "hardware" || device.open_errno.value_or(0) != 0) continue;
    if (device.dmabuf_probe == EBADF) continue;
    const std::string source = fmt::format("ibv_reg_dmabuf_mr(fd -1) on {}", device.device);
    const bool is_old = kernel && *kernel < first_kernel;
    if (device.dmabuf_probe == EPROTONOSUPPORT || (is_old && !device.dmabuf_probe)) {
      refused.push_back({source, device.dmabuf_probe ? errno_text(*device.dmabuf_probe) : "not probed"});
    } else if (!device.dmabuf_probe) {
      findings.push_back(find(self, "not_probed", device.device, {{source, "not probed"}}));
    } else {
      findings.push_back(find(self, "provider", device.device, {{source, errno_text(*device.dmabuf_probe)}}));
    }
  }
  if (refused.empty()) return;
  refused.push_back(evidence(facts.root, "proc/sys/kernel/osrelease"));
  findings.push_back(find(self, "old_kernel", "", std::move(refused)));
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  // Without GPUs, or with none that could do it, dma-bufs are of no use.
  if (facts.answers.gpus.empty() || !some_gpu_supports_rdma(facts.answers)) return {};
  std::vector<Finding> findings;
  look_at_gpus(self, facts, findings);
  look_at_rdma(self, facts, findings);
  if (findings.empty()) findings.push_back(find(self, "ok", "", {}));
  return findings;
}

}  // namespace

const Check dmabuf_check = {.name = "dmabuf",
                            .question = "Can GPU memory be registered as dma-buf?",
                            .looks_at =
                                "CUDA's attribute DMA_BUF_SUPPORTED, ibv_reg_dmabuf_mr with descriptor -1, "
                                "/proc/driver/nvidia/version, /proc/sys/kernel/osrelease",
                            .layer = Layer::driver,
                            .causes = causes,
                            .run = run};

}  // namespace gdrbench::doctor
