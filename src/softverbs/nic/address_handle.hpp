#pragma once

#include <infiniband/verbs.h>

namespace gdrbench::softverbs {

class AddressHandle : public ibv_ah {
 public:
  AddressHandle(ibv_pd& domain, const ibv_ah_attr& attr)
      : ibv_ah{domain.context, &domain, 0}, attributes(attr) {}
  static AddressHandle& of(ibv_ah* handle) { return *static_cast<AddressHandle*>(handle); }

  const ibv_ah_attr attributes;
};

/// 0, or EINVAL: a RoCE address needs a GRH, port 1, a GID index of the table.
int check_address(const ibv_ah_attr& attributes, int gids);

}  // namespace gdrbench::softverbs
