// The backend of a build without the CUDA Toolkit: nothing can be made, so nothing made is ever used.
#include "cuda/backend.hpp"
#include "cuda/device.hpp"
#include "cuda/device_memory.hpp"
#include "cuda/dmabuf.hpp"
#include "cuda/host_registration.hpp"
#include "cuda/ipc.hpp"
#include "cuda/peer_copy.hpp"
#include "cuda/peer_link.hpp"
#include "cuda/pointer.hpp"
#include "cuda/stream.hpp"
#include "cuda/vmm_memory.hpp"
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
void use_device(int /*gpu*/) {
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
void copy_and_wait(int /*gpu*/, std::byte* /*destination*/, const std::byte* /*source*/,
                   std::uint64_t /*length*/, CopyKind /*kind*/) {
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

PointerKind classify(const void* /*address*/) {
  return PointerKind::plain_host;
}
void require_rdma_capable(const void* /*address*/) {
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
PeerLink peer_link(int /*gpu*/, int /*other*/) {
  refuse();
}
int find_gpu(const std::string& /*uuid*/) {
  return -1;
}
PeerCopy::PeerCopy(int /*gpu*/, int /*other*/) {
  refuse();
}
PeerCopy::Times PeerCopy::run(std::byte* /*destination*/, const std::byte* /*source*/,
                              std::uint64_t /*length*/, std::uint64_t /*count*/) {
  refuse();
}

}  // namespace gdrbench::cuda
