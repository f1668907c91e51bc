#pragma once

#include "base/case_fields.hpp"
#include "gdrbench/end_info.hpp"
#include "gdrbench/path_proof.hpp"

/// The fields of what a rank says of its machine, and of what proves the path that a case took.
namespace gdrbench {

inline constexpr long double max_link_bytes_per_second = 1e15L;
/// Of a text that the other end sent.
inline constexpr long double max_text_bytes = 4096;

template <>
struct FieldList<CpuInfo> {
  static constexpr auto fields =
      std::tuple(field("model", &CpuInfo::model, "", {0, max_text_bytes}),
                 field("cores", &CpuInfo::cores, "that the process may use", {0, 1 << 20}));
};

template <>
struct FieldList<CudaInfo> {
  using C = CudaInfo;
  static constexpr auto fields = std::tuple(
      field("backend", &C::backend, "cuda or none", {0, max_text_bytes}),
      field("unavailable", &C::unavailable, "why there is no usable GPU; else empty", {0, max_text_bytes}),
      field("count", &C::count, "of GPUs", {0, 1024}),
      field("name", &C::name, "of GPU 0, as are those below", {0, max_text_bytes}),
      field("driver", &C::driver, "", {0, max_text_bytes}), field("uuid", &C::uuid, "", {0, max_text_bytes}),
      field("pci_address", &C::pci_address, "", {0, max_text_bytes}),
      field("gpu_direct_rdma", &C::gpu_direct_rdma, "CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED"),
      field("dmabuf", &C::dmabuf, "CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED"));
};

template <>
struct FieldList<GpuInfo> {
  using G = GpuInfo;
  static constexpr auto fields = std::tuple(field("index", &G::index, "by which --gpu chooses", {0, 1023}),
                                            field("name", &G::name, "", {0, max_text_bytes}),
                                            field("uuid", &G::uuid, "", {0, max_text_bytes}),
                                            field("pci_address", &G::pci_address, "", {0, max_text_bytes}),
                                            field("numa_node", &G::numa_node, "-1: unknown", {-1, 1 << 20}));
};

template <>
struct FieldList<RdmaDeviceInfo> {
  using R = RdmaDeviceInfo;
  static constexpr auto fields = std::tuple(
      field("name", &R::name, "", {0, max_text_bytes}), field("port", &R::port, "", {0, 255}),
      field("fabric", &R::fabric, ""), field("link_layer", &R::link_layer, "", {0, max_text_bytes}),
      field("active_mtu", &R::active_mtu, "bytes", {0, 65'536}),
      field("link_bytes_per_second", &R::link_bytes_per_second, "nominal; 0: unknown",
            {0, max_link_bytes_per_second}),
      field("unusable", &R::unusable, "why no queue pair can be had; else empty", {0, max_text_bytes}),
      field("pci_address", &R::pci_address, "empty for devices in software", {0, max_text_bytes}),
      field("numa_node", &R::numa_node, "-1: unknown", {-1, 1 << 20}),
      field("gpu_distances", &R::gpu_distances, "to each GPU, by its number"));
};

template <>
struct FieldList<RdmaInfo> {
  using R = RdmaInfo;
  static constexpr auto fields =
      std::tuple(field("devices", &R::devices, ""),
                 field("unavailable", &R::unavailable, "why there is none; else empty", {0, max_text_bytes}));
};

template <>
struct FieldList<EndInfo> {
  using E = EndInfo;
  static constexpr auto fields = std::tuple(
      field("version", &E::version, "of gdrbench", {0, max_text_bytes}),
      field("commit", &E::commit, "", {0, max_text_bytes}), field("host", &E::host, "", {0, max_text_bytes}),
      field("kernel", &E::kernel, "", {0, max_text_bytes}), field("cpu", &E::cpu, ""),
      field("memory_bytes", &E::memory_bytes, ""), field("numa_nodes", &E::numa_nodes, "", {0, 1 << 20}),
      field("cuda", &E::cuda, ""), field("gpus", &E::gpus, ""), field("rdma", &E::rdma, ""));
};

template <>
struct FieldList<TcpProof> {
  using T = TcpProof;
  static constexpr auto fields =
      std::tuple(field("sockets", &T::sockets, ""),
                 field("threads", &T::threads, "that move them, beside the one that measures"),
                 field("local", &T::local, "address of the first socket", {0, max_text_bytes}),
                 field("remote", &T::remote, "", {0, max_text_bytes}), field("mss_bytes", &T::mss_bytes, ""),
                 field("congestion_control", &T::congestion_control, "", {0, max_text_bytes}));
};

template <>
struct FieldList<VerbsProof> {
  using V = VerbsProof;
  static constexpr auto fields = std::tuple(
      field("device", &V::device, "", {0, max_text_bytes}), field("fabric", &V::fabric, ""),
      field("port", &V::port, "", {0, 255}), field("link_layer", &V::link_layer, "", {0, max_text_bytes}),
      field("gid_index", &V::gid_index, "-1: unknown", {-1, 65'535}),
      field("gid", &V::gid, "", {0, max_text_bytes}), field("path_mtu", &V::path_mtu, "bytes", {0, 65'536}),
      field("active_mtu", &V::active_mtu, "bytes", {0, 65'536}),
      field("link_bytes_per_second", &V::link_bytes_per_second, "nominal; 0: unknown",
            {0, max_link_bytes_per_second}),
      field("registrations", &V::registrations, "of all memory registered"),
      field("inline_bytes", &V::inline_bytes, "largest message that the queue pair takes inline"),
      field("settings", &V::settings, "in force, this rank's own"));
};

template <>
struct FieldList<IpcProof> {
  using I = IpcProof;
  static constexpr auto fields = std::tuple(
      field("gpu_uuid", &I::gpu_uuid, "", {0, max_text_bytes}), field("queue_pairs", &I::queue_pairs, ""),
      field("remote_gpu_uuid", &I::remote_gpu_uuid, "", {0, max_text_bytes}),
      field("link", &I::link, "nvlink where cudaDevP2PAttrNativeAtomicSupported is 1, else pcie",
            {0, max_text_bytes}),
      field("native_atomics", &I::native_atomics, ""),
      field("performance_rank", &I::performance_rank, "cudaDevP2PAttrPerformanceRank", {-1024, 1024}));
};

template <>
struct FieldList<PolicyProof> {
  using P = PolicyProof;
  static constexpr bool omits_absent = true;
  static constexpr auto fields = std::tuple(
      field("policy", &P::policy, ""),
      field("registration", &P::registration, "of the memory that the wire works on"),
      field("segments_per_message", &P::segments_per_message, ""), field("inline", &P::inline_data, ""),
      field("staging", &P::staging, ""), field("chunk_bytes", &P::chunk_bytes, ""),
      field("outgoing_slots", &P::outgoing_slots, "chunks, on each queue pair"),
      field("incoming_slots", &P::incoming_slots, "chunks, on each queue pair"),
      field("staging_bytes", &P::staging_bytes, "of host memory"),
      field("copy_engine", &P::copy_engine, "", {0, max_text_bytes}),
      field("copy_engine_reason", &P::copy_engine_reason, "", {0, max_text_bytes}));
};

template <>
struct FieldList<FlushTimes> {
  static constexpr auto fields =
      std::tuple(field("median", &FlushTimes::median, "", {0, max_link_bytes_per_second}),
                 field("max", &FlushTimes::max, "", {0, max_link_bytes_per_second}));
};

template <>
struct FieldList<GpuWritesProof> {
  using G = GpuWritesProof;
  static constexpr auto fields = std::tuple(
      field("writes_ordering", &G::writes_ordering, "none, owner or all_devices", {0, max_text_bytes}),
      field("flush_needed", &G::flush_needed, "before a kernel may read what a NIC wrote"),
      field("flush_us", &G::flush_us, ""),
      field("no_flush_reason", &G::no_flush_reason, "why flush_us is null", {0, max_text_bytes}));
};

template <>
struct FieldList<ObserverProof> {
  using O = ObserverProof;
  static constexpr bool omits_absent = true;
  static constexpr auto fields = std::tuple(field("kind", &O::kind, "cpu or gpu kernel", {0, max_text_bytes}),
                                            field("gpu_uuid", &O::gpu_uuid, "", {0, max_text_bytes}));
};

template <>
struct FieldList<LoadProof> {
  using L = LoadProof;
  static constexpr auto fields =
      std::tuple(field("kind", &L::kind, ""), field("blocks", &L::blocks, "of the kernel that works"),
                 field("gpu_uuid", &L::gpu_uuid, "", {0, max_text_bytes}));
};

template <>
struct FieldList<BindingProof> {
  static constexpr auto fields =
      std::tuple(field("cores", &BindingProof::cores, "that the rank ran on", {0, 65'536}),
                 field("why", &BindingProof::why, "", {0, max_text_bytes}));
};

template <>
struct FieldList<PathProof> {
  using P = PathProof;
  static constexpr bool omits_absent = true;
  static constexpr auto fields = std::tuple(
      field("tcp", &P::tcp, ""), field("verbs", &P::verbs, ""), field("ipc", &P::ipc, ""),
      field("policy", &P::policy, ""), field("gpu_writes", &P::gpu_writes, ""),
      field("observer", &P::observer, ""), field("load", &P::load, ""),
      field("gpu", &P::gpu, "of the payload, where a NIC works for it", {0, 1023}),
      field("gpu_nic_distance", &P::gpu_nic_distance, "absent for a device in software"),
      field("port_bytes_sent", &P::port_bytes_sent, "in the last run, by the NIC's port, headers included"),
      field("binding", &P::binding, ""));
};

}  // namespace gdrbench
