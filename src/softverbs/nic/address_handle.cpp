#include "nic/address_handle.hpp"

#include <cerrno>

namespace gdrbench::softverbs {

int check_address(const ibv_ah_attr& attributes, int gids) {
  const bool valid =
      attributes.is_global != 0 && attributes.port_num == 1 && attributes.grh.sgid_index < gids;
  return valid ? 0 : EINVAL;
}

}  // namespace gdrbench::softverbs
