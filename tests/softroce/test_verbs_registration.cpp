#include <gmock/gmock.h>
#include <sys/mman.h>

#include "two_wires.hpp"

// How memory that is said to be a GPU's is registered. Host memory stands in for it: to the kernel peer
// memory is registered by the same call.
namespace gdrbench::wire {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class GpuMemoryRegistration : public NeedsRdma {
 protected:
  void SetUp() override {
    NeedsRdma::SetUp();
    if (IsSkipped()) return;
    domain_ = verbs::Device::open(verbs_options().device, 1)->allocate_protection_domain();
  }
  verbs::MemoryRegion registered(const MemoryView& view, RegisterBy registration) const {
    return domain_->register_memory(view, {.registration = registration});
  }
  MemoryView view() const { return {.address = memory_.data(), .length = memory_.size(), .on_gpu = true}; }
  /// With a descriptor that no process has open.
  MemoryView view_with_broken_dmabuf() const {
    MemoryView broken = view();
    broken.dmabuf_fd = 1 << 20;
    return broken;
  }
  std::string refusal(const MemoryView& refused, RegisterBy registration) const {
    return error_text<Unavailable>([&] { registered(refused, registration); });
  }

  const Buffer memory_{BufferOptions{.length = 1 << 16}};
  std::shared_ptr<const verbs::ProtectionDomain> domain_;
};

TEST_F(GpuMemoryRegistration, falls_to_peer_memory_only_when_any_way_will_do) {
  EXPECT_EQ(registered(view(), RegisterBy::automatic).registration(), Registration::peermem);
  EXPECT_EQ(registered(view_with_broken_dmabuf(), RegisterBy::automatic).registration(),
            Registration::peermem);
  EXPECT_EQ(registered(view_with_broken_dmabuf(), RegisterBy::peermem).registration(), Registration::peermem);
  EXPECT_THAT(refusal(view_with_broken_dmabuf(), RegisterBy::dmabuf),
              AllOf(HasSubstr("as dma-buf: E"), HasSubstr("--registration dmabuf"),
                    Not(HasSubstr("as peer memory"))));
}

TEST_F(GpuMemoryRegistration, tells_why_the_gpu_gave_no_dmabuf) {
  MemoryView none = view();
  EXPECT_THAT(refusal(none, RegisterBy::dmabuf), HasSubstr("as dma-buf: the GPU exported none"));
  none.no_dmabuf_reason = "a reason of its own";
  EXPECT_THAT(refusal(none, RegisterBy::dmabuf), HasSubstr("as dma-buf: a reason of its own"));
}

TEST_F(GpuMemoryRegistration, tells_of_both_failures_and_of_what_is_missing) {
  void* const unreadable = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(unreadable, MAP_FAILED);
  MemoryView broken = view_with_broken_dmabuf();
  broken.address = static_cast<std::byte*>(unreadable);
  broken.length = 4096;
  EXPECT_THAT(refusal(broken, RegisterBy::automatic),
              AllOf(HasSubstr("as dma-buf: E"), HasSubstr("as peer memory: E")));
  EXPECT_THAT(refusal(broken, RegisterBy::peermem),
              AllOf(HasSubstr("as peer memory: E"), Not(HasSubstr("as dma-buf:"))));
  broken.gpu_direct_rdma = false;
  EXPECT_THAT(refusal(broken, RegisterBy::automatic), HasSubstr("this GPU does not support GPUDirect RDMA"));
  broken.gpu_direct_rdma = true;
  broken.gpu_dmabuf = false;
  EXPECT_THAT(refusal(broken, RegisterBy::automatic), HasSubstr("the GPU exports no dma-buf"));
  munmap(unreadable, 4096);
}

TEST_F(GpuMemoryRegistration, of_a_wire_refuses_host_memory_that_is_said_to_be_a_gpus) {
  for (const RegisterBy registration : {RegisterBy::automatic, RegisterBy::dmabuf, RegisterBy::peermem}) {
    VerbsOptions options = verbs_options();
    options.registration = registration;
    VerbsWire wire(options, WireLimits{}, VerbsWireRole::active);
    EXPECT_NE(error_text<Unavailable>([&] { wire.register_memory(view()); }), "");
  }
}

}  // namespace
}  // namespace gdrbench::wire
