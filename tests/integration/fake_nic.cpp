// A library to preload: it lists one RDMA device with an active port, as a NIC would be listed, and can do
// nothing more. It shows which device the program decides for, and what it says when the two ends have
// different ones.
#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>

#undef ibv_query_port

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  static ibv_device device{};
  device.node_type = IBV_NODE_CA;
  device.transport_type = IBV_TRANSPORT_IB;
  std::strcpy(device.name, "fake0");
  static ibv_device* list[] = {&device, nullptr};
  if (count != nullptr) *count = 1;
  return list;
}

void ibv_free_device_list(ibv_device**) {}

ibv_context* ibv_open_device(ibv_device* device) {
  static ibv_context context{};  // its abi_compat of null sends the inline verbs to the functions below
  context.device = device;
  return &context;
}

int ibv_close_device(ibv_context*) {
  return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  std::memset(attributes, 0, sizeof *attributes);
  attributes->phys_port_cnt = 1;
  return 0;
}

int ibv_query_port(ibv_context*, std::uint8_t, struct _compat_ibv_port_attr* compatible) {
  auto* const port = reinterpret_cast<ibv_port_attr*>(compatible);
  port->state = IBV_PORT_ACTIVE;
  port->active_mtu = IBV_MTU_4096;
  port->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}
}
