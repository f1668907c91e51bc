// The backend of a build without the CUDA Toolkit: nothing can be made, so nothing made is ever used.
#include "cuda/device.hpp"
#include "cuda/memory.hpp"
#include "cuda/p2p.hpp"
#include "cuda/pattern.hpp"
#include "cuda/pointer.hpp"
#include "cuda/resident.hpp"
#include "cuda/resident_copy.hpp"
#include "cuda/stream.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::cuda {
namespace {

[[noreturn]] void refuse() {
  throw Unavailable(unavailable_reason());
}

}  // namespace

std::string_view backend() {
  return "none";
}

const std::string& unavailable_reason() {
  static const std::string reason = "built without the CUDA Toolkit";
  return reason;
}

int device_count() {
  return 0;
}
DeviceInfo device_info(int /*gpu*/) {
  refuse();
}
std::string device_uuid(int /*gpu*/) {
  refuse();
}
RdmaSupport rdma_support(int /*gpu*/) {
  refuse();
}
std::string_view WriteOrdering::name() const {
  return "none";
}
bool WriteOrdering::needs_flush() const {
  return true;
}
WriteOrdering write_ordering(int /*gpu*/) {
  refuse();
}
void force_flush(int /*gpu*/) {
  refuse();
}
void use_device(int /*gpu*/) {
  refuse();
}
void share_multiprocessors(const void* /*kernel*/) {
  refuse();
}
void flush_rdma_writes(int /*gpu*/) {
  refuse();
}

void DestroyStream::operator()(void* /*stream*/) const noexcept {}
void DestroyEvent::operator()(void* /*event*/) const noexcept {}
Event::Event(int /*gpu*/) {
  refuse();
}
bool Event::done() const {
  refuse();
}
Stream::Stream(int /*gpu*/) {
  refuse();
}
void Stream::copy(std::byte* /*destination*/, const std::byte* /*source*/, std::uint64_t /*length*/,
                  CopyKind /*kind*/) {
  refuse();
}
void Stream::record(Event& /*event*/) {
  refuse();
}
void Stream::wait() {
  refuse();
}

std::uint64_t rdma_page_bytes() {
  refuse();
}
void FreeDeviceMemory::operator()(void* /*allocation*/) const noexcept {}
DeviceMemory::DeviceMemory(int /*gpu*/, std::uint64_t /*length*/) {
  refuse();
}
void UnmapVmmMemory::operator()(void* /*address*/) const noexcept {}
VmmMemory::VmmMemory(int /*gpu*/, std::uint64_t /*length*/) {
  refuse();
}
void UnregisterHostMemory::operator()(void* /*address*/) const noexcept {}
HostRegistration::HostRegistration(int /*gpu*/, std::byte* /*address*/, std::uint64_t /*length*/) {
  refuse();
}

void FreePinnedMemory::operator()(void* /*address*/) const noexcept {}
PinnedMemory::PinnedMemory(int /*gpu*/, std::uint64_t /*length*/) {
  refuse();
}

ResidentCopy::ResidentCopy(int gpu, CopyKind kind) : gpu_(gpu), kind_(kind), memory_(gpu, 0), stream_(gpu) {}
void ResidentCopy::start(std::uint64_t /*next*/) {
  refuse();
}
void ResidentCopy::join() {
  refuse();
}
void ResidentCopy::check() const {
  refuse();
}
std::byte* ResidentCopy::order(std::uint64_t /*piece*/) const {
  refuse();
}
std::byte* ResidentCopy::data(std::uint64_t /*piece*/) const {
  refuse();
}
std::uint64_t ResidentCopy::arrived() const {
  refuse();
}

PatternKernels::PatternKernels(int gpu) : gpu_(gpu), stream_(gpu), host_word_(gpu, 0) {
  refuse();
}
void PatternKernels::write(const PatternRanges& /*ranges*/, std::uint64_t /*flip*/) {
  refuse();
}
std::optional<WrongWord> PatternKernels::first_wrong(const PatternRanges& /*ranges*/) {
  refuse();
}
void PatternKernels::start_writing(const PatternRanges& /*ranges*/, std::uint64_t /*flip*/) {
  refuse();
}
void PatternKernels::start_checking(const PatternRanges& /*ranges*/) {
  refuse();
}

ResidentKernel::ResidentKernel(int gpu, const void* kernel, std::size_t words)
    : gpu_(gpu), kernel_(kernel), words_(words), shared_(gpu, 0) {
  refuse();
}
ResidentKernel::~ResidentKernel() {}
void ResidentKernel::launch(unsigned /*blocks*/, unsigned /*threads*/, void** /*arguments*/) {
  refuse();
}
void ResidentKernel::stop() {}
void ResidentKernel::check() const {
  refuse();
}
std::uint64_t ResidentKernel::word(std::size_t /*index*/) const {
  refuse();
}
GpuWatcher::GpuWatcher(int gpu) : kernel_(gpu, nullptr, 1) {}
void GpuWatcher::start(std::byte* /*tail*/, std::byte /*expected*/, std::uint64_t /*messages*/) {
  refuse();
}
GpuLoad::GpuLoad(int gpu, LoadKind /*kind*/) : blocks_(0), kernel_(gpu, nullptr, 1) {}
void GpuLoad::start() {
  refuse();
}
std::uint64_t GpuLoad::units() const {
  refuse();
}

PointerKind classify(const void* /*address*/) {
  return PointerKind::plain_host;
}
void require_rdma_capable(const void* /*address*/) {
  refuse();
}
void require_registrable(const void* /*address*/) {
  refuse();
}
bool set_sync_memops(const void* /*address*/) {
  refuse();
}

Dmabuf::Dmabuf(int /*gpu*/, const std::byte* /*address*/, std::uint64_t /*length*/) {
  refuse();
}
Dmabuf::~Dmabuf() {}  // not trivial, as with the Toolkit

IpcExport export_memory(int /*gpu*/, const std::byte* /*address*/) {
  refuse();
}
void CloseIpcMemory::operator()(void* /*base*/) const noexcept {}
ImportedMemory::ImportedMemory(int /*gpu*/, const IpcExport& /*exported*/) {
  refuse();
}
P2pLink p2p_link(int /*gpu*/, int /*other*/) {
  refuse();
}
int find_gpu(const std::string& /*uuid*/) {
  return -1;
}
P2pCopy::P2pCopy(int gpu, int other) : gpu_(gpu), other_(other), stream_(gpu) {
  refuse();
}
P2pCopy::Times P2pCopy::run(std::byte* /*destination*/, const std::byte* /*source*/, std::uint64_t /*length*/,
                            std::uint64_t /*count*/) {
  refuse();
}

}  // namespace gdrbench::cuda
