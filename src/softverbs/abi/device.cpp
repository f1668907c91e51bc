// The device and its port.
#include <endian.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "abi/verbs.hpp"

#undef ibv_query_port

/// enum ibv_gid_type_sysfs of libibverbs' driver interface, which ibv_devinfo uses.
enum ibv_gid_type_sysfs {  // NOLINT(readability-identifier-naming): the name is libibverbs'
  IBV_GID_TYPE_SYSFS_IB_ROCE_V1,
  IBV_GID_TYPE_SYSFS_ROCE_V2
};

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

namespace {

const std::vector<GidEntry>& gids_of(ibv_context* context) {
  return Context::of(context).nic().gids();
}

const GidEntry& gid_at(ibv_context* context, std::uint32_t port, std::uint32_t index) {
  const auto& table = gids_of(context);
  refuse_if(port != 1 || index >= table.size());
  return table[index];
}

ibv_gid_entry public_entry(const GidEntry& entry, std::uint32_t index) {
  return {entry.gid, index, 1, IBV_GID_TYPE_ROCE_V2, entry.interface};
}

/// A program that was built with another header has a longer struct.
void copy_entry(void* to, std::size_t entry_bytes, const ibv_gid_entry& entry) {
  std::memset(to, 0, entry_bytes);
  std::memcpy(to, &entry, sizeof(entry));
}

int copy_port(ibv_context* context, std::uint8_t port, void* attributes, std::size_t bytes) {
  return returns_errno("ibv_query_port", [&] {
    refuse_if(port != 1);
    const ibv_port_attr ours = port_attributes(static_cast<int>(gids_of(context).size()));
    std::memset(attributes, 0, bytes);
    std::memcpy(attributes, &ours, std::min(bytes, sizeof(ours)));
    return 0;
  });
}

}  // namespace

int operations::query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes,
                           std::size_t bytes) {
  return copy_port(context, port, attributes, bytes);
}

/// The struct of the exported function ends before port_cap_flags2.
GDRBENCH_VERB int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* attributes) {
  return copy_port(context, port, attributes, offsetof(ibv_port_attr, port_cap_flags2));
}

GDRBENCH_VERB int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) {
  return returns_minus_one("ibv_query_gid", [&] {
    *gid = gid_at(context, port, static_cast<std::uint32_t>(index)).gid;
    return 0;
  });
}

GDRBENCH_VERB int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index,
                                     ibv_gid_type_sysfs* type) {
  return returns_minus_one("ibv_query_gid", [&] {
    gid_at(context, port, index);
    *type = IBV_GID_TYPE_SYSFS_ROCE_V2;
    return 0;
  });
}

GDRBENCH_VERB int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index,
                                    ibv_gid_entry* entry, std::uint32_t flags, std::size_t entry_bytes) {
  return returns_errno("ibv_query_gid", [&] {
    refuse_if(flags != 0, EOPNOTSUPP);
    refuse_if(entry_bytes < sizeof(ibv_gid_entry));
    copy_entry(entry, entry_bytes, public_entry(gid_at(context, port, index), index));
    return 0;
  });
}

/// The number of entries, or a negative errno value.
GDRBENCH_VERB ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries,
                                           std::size_t max_entries, std::uint32_t flags,
                                           std::size_t entry_bytes) {
  std::size_t count = 0;
  const int error = returns_errno("ibv_query_gid", [&] {
    const auto& table = gids_of(context);
    refuse_if(flags != 0, EOPNOTSUPP);
    refuse_if(entry_bytes < sizeof(ibv_gid_entry) || table.size() > max_entries);
    auto* place = reinterpret_cast<std::byte*>(entries);
    for (const GidEntry& entry : table) {
      copy_entry(place, entry_bytes, public_entry(entry, static_cast<std::uint32_t>(count++)));
      place += entry_bytes;
    }
    return 0;
  });
  return error == 0 ? static_cast<ssize_t>(count) : -error;
}

GDRBENCH_VERB int ibv_query_pkey(ibv_context*, std::uint8_t port, int index, __be16* pkey) {
  return returns_minus_one("ibv_query_pkey", [&] {
    refuse_if(port != 1 || index != 0);
    *pkey = htobe16(default_pkey);
    return 0;
  });
}

/// The index, or −1 and errno.
GDRBENCH_VERB int ibv_get_pkey_index(ibv_context*, std::uint8_t port, __be16 pkey) {
  return returns_minus_one("ibv_get_pkey_index", [&] {
    refuse_if(port != 1 || pkey != htobe16(default_pkey));
    return 0;
  });
}

}  // namespace gdrbench::softverbs
