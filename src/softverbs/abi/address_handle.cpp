
#include <endian.h>
#include <netinet/ip.h>

#include <cstring>
#include <optional>

#include "abi/verbs.hpp"
#include "nic/context.hpp"

namespace gdrbench::softverbs {
namespace {

ibv_gid mapped_gid(std::uint32_t ipv4) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(gid.raw + 12, &ipv4, sizeof(ipv4));
  return gid;
}

/// Where a datagram came from and went to, of the 40 bytes before it: an IPv6 header, or 20 bytes of no
/// meaning and an IPv4 header (RoCE v2, annex A17 of the InfiniBand specification).
struct Route {
  ibv_gid source{}, destination{};
  std::uint32_t flow_label = 0;
  std::uint8_t hop_limit = 0, traffic_class = 0;
};

std::optional<Route> route_of(const ibv_grh& grh) {
  const std::uint32_t first_word = be32toh(grh.version_tclass_flow);
  if (first_word >> 28 == 6)
    return Route{grh.sgid, grh.dgid, first_word & IB_GRH_FLOWLABEL_MASK, grh.hop_limit,
                 static_cast<std::uint8_t>(first_word >> 20)};
  iphdr ipv4{};
  static_assert(sizeof(grh) == 20 + sizeof(ipv4));
  std::memcpy(&ipv4, reinterpret_cast<const std::byte*>(&grh) + 20, sizeof(ipv4));
  if (ipv4.version != 4) return std::nullopt;
  return Route{mapped_gid(ipv4.saddr), mapped_gid(ipv4.daddr), 0, ipv4.ttl, ipv4.tos};
}

void set_reply_address(ibv_context* context, std::uint8_t port, const ibv_wc& completion, const ibv_grh* grh,
                       ibv_ah_attr& attributes) {
  refuse_if(port != 1);
  attributes = {};
  attributes.dlid = completion.slid;
  attributes.sl = completion.sl;
  attributes.src_path_bits = completion.dlid_path_bits;
  attributes.port_num = port;
  if ((completion.wc_flags & IBV_WC_GRH) == 0) return;

  const std::optional<Route> route = route_of(*grh);
  refuse_if(!route, EPROTONOSUPPORT);
  const int index = find_gid(Context::of(context).nic().gids(), route->destination);
  refuse_if(index < 0);
  attributes.is_global = 1;
  attributes.grh = {.dgid = route->source,
                    .flow_label = route->flow_label,
                    .sgid_index = static_cast<std::uint8_t>(index),
                    .hop_limit = route->hop_limit,
                    .traffic_class = route->traffic_class};
}

ibv_ah* create_handle(ibv_pd* pd, const ibv_ah_attr& attributes) {
  Context& owner = Context::of(pd->context);
  if (const int error = check_address(attributes, static_cast<int>(owner.nic().gids().size()))) refuse(error);
  auto* const handle = create<AddressHandle>(owner.address_handles, *pd, attributes);
  ++ProtectionDomain::of(pd).users;
  return handle;
}

}  // namespace

GDRBENCH_VERB ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  return returns_null("ibv_create_ah", [&] { return create_handle(pd, *attributes); });
}

GDRBENCH_VERB int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* completion,
                                      ibv_grh* grh, ibv_ah_attr* attributes) {
  return returns_minus_one("ibv_init_ah_from_wc", [&] {
    set_reply_address(context, port, *completion, grh, *attributes);
    return 0;
  });
}

GDRBENCH_VERB ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* completion, ibv_grh* grh, std::uint8_t port) {
  return returns_null("ibv_create_ah", [&] {
    ibv_ah_attr attributes;
    set_reply_address(pd->context, port, *completion, grh, attributes);
    return create_handle(pd, attributes);
  });
}

GDRBENCH_VERB int ibv_destroy_ah(ibv_ah* handle) {
  return returns_errno("ibv_destroy_ah", [&] {
    Context& owner = Context::of(handle->context);
    ProtectionDomain& domain = ProtectionDomain::of(handle->pd);
    destroy(owner.address_handles, &AddressHandle::of(handle));
    --domain.users;
    return 0;
  });
}

/// Not offered: there is no Ethernet header to fill. Negative, as the errno values of this verb are.
GDRBENCH_VERB int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, std::uint8_t*, std::uint16_t*) {
  return -EOPNOTSUPP;
}

}  // namespace gdrbench::softverbs
