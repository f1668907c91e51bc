#include <cstring>
#include <memory>
#include <string>

#include "abi/guard.hpp"
#include "abi/operations.hpp"
#include "abi/visible.hpp"

namespace gdrbench::softverbs {
namespace {

template <std::size_t size>
void fill(char (&field)[size], const std::string& text) {
  std::strncpy(field, text.c_str(), size - 1);
}

/// The one device. It lives as long as the process, so that it does not matter who holds a list.
ibv_device& the_device() {
  static ibv_device device = [] {
    ibv_device made{};
    made.node_type = IBV_NODE_CA;
    made.transport_type = IBV_TRANSPORT_IB;
    fill(made.name, device_name);
    fill(made.dev_name, device_name);
    // Programs read attributes below these; that they are not there says that no kernel driver is.
    fill(made.dev_path, std::string("/sys/class/infiniband_verbs/") + device_name);
    fill(made.ibdev_path, std::string("/sys/class/infiniband/") + device_name);
    return made;
  }();
  return device;
}

}  // namespace

// Devices of the kernel are hidden while this library is preloaded: a program shall not take one by accident.
GDRBENCH_VERB ibv_device** ibv_get_device_list(int* count) {
  return returns_null("ibv_get_device_list", [&] {
    auto** list = new ibv_device* [2] { &the_device(), nullptr };
    if (count != nullptr) *count = 1;
    return list;
  });
}

GDRBENCH_VERB void ibv_free_device_list(ibv_device** list) {
  delete[] list;
}

GDRBENCH_VERB const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}

GDRBENCH_VERB __be64 ibv_get_device_guid(ibv_device*) {
  return node_guid();
}

/// −1, as from a kernel that does not number its devices.
GDRBENCH_VERB int ibv_get_device_index(ibv_device*) {
  return -1;
}

GDRBENCH_VERB ibv_context* ibv_open_device(ibv_device* device) {
  return returns_null("ibv_open_device", [&] {
    auto* context = new Context(*device);
    operations::install(*context);
    return &context->context;
  });
}

GDRBENCH_VERB int ibv_close_device(ibv_context* context) {
  return returns_minus_one("ibv_close_device", [&] {
    // Objects that the program has not destroyed refer to the context, and the NIC may be working for them:
    // then it stays until the process ends.
    if (Context& owner = Context::of(context); owner.unused()) delete &owner;
    return 0;
  });
}

GDRBENCH_VERB int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  return returns_errno("ibv_query_device", [&] {
    *attributes = device_attributes();
    return 0;
  });
}

int operations::query_device_ex(ibv_context*, const ibv_query_device_ex_input* input,
                                ibv_device_attr_ex* attributes, std::size_t bytes) {
  return returns_errno("ibv_query_device", [&] {
    refuse_if(input != nullptr && input->comp_mask != 0);
    refuse_if(bytes < sizeof(attributes->orig_attr));
    // A program that was built with another header has a shorter or a longer struct.
    const ibv_device_attr_ex ours = extended_device_attributes();
    std::memset(attributes, 0, bytes);
    std::memcpy(attributes, &ours, std::min(bytes, sizeof(ours)));
    return 0;
  });
}

}  // namespace gdrbench::softverbs
