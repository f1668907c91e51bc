#pragma once

#include <infiniband/verbs.h>

namespace gdrbench::softverbs {

/// Whether a queue pair of the type may go from one state to another with these attributes given (enum
/// ibv_qp_attr_mask): all that the transition requires, and nothing that it does not know. After the table in
/// the InfiniBand specification, 11.2.5.2, and the manual page ibv_modify_qp(3).
bool transition_allowed(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace gdrbench::softverbs
