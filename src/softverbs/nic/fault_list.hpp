#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "nic/faults.hpp"

namespace gdrbench::softverbs {

/// The verbs that can be told to fail.
constexpr std::array<std::string_view, 22> failing_verbs = {
    "ibv_open_device",   "ibv_query_device", "ibv_query_port",
    "ibv_query_gid",     "ibv_alloc_pd",     "ibv_reg_mr",
    "ibv_reg_dmabuf_mr", "ibv_dereg_mr",     "ibv_create_comp_channel",
    "ibv_create_cq",     "ibv_resize_cq",    "ibv_req_notify_cq",
    "ibv_poll_cq",       "ibv_get_cq_event", "ibv_create_srq",
    "ibv_post_srq_recv", "ibv_create_qp",    "ibv_modify_qp",
    "ibv_query_qp",      "ibv_post_send",    "ibv_post_recv",
    "ibv_create_ah"};

/// Its place in `failing_verbs`, whose size when it is not there.
std::size_t verb_index(std::string_view verb);

/// Which of the calls, counted from 1, an item means.
struct Occurrence {
  std::uint64_t first = 1, last = 1;
  std::uint64_t every = 1;

  bool hits(std::uint64_t count) const { return count >= first && count <= last && count % every == 0; }
};

struct VerbFault {
  std::size_t verb = 0;  ///< index in `failing_verbs`
  Occurrence when;
  int error = 0;
};
struct WorkRequestFault {
  Occurrence when;
  CompletionFault completion;
};
struct MessageFault {
  Occurrence when;
  PayloadFault payload;
};

struct FaultList {
  std::vector<VerbFault> calls;
  std::vector<WorkRequestFault> work_requests;
  std::vector<MessageFault> messages;
};

/// Reads the list that is described at `Faults`. Throws std::invalid_argument naming the item, its place and
/// what is expected.
FaultList parse_faults(std::string_view text);

}  // namespace gdrbench::softverbs
