#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gdrbench::softverbs {

/// What goes wrong with a message as it leaves the requester.
struct PayloadFault {
  bool corrupt =
      false;          ///< one bit in the middle of the payload changes on the way (of an empty one: nothing)
  bool drop = false;  ///< it is lost; the requester's timeout finds out
  bool cut = false;   ///< the connection to the remote breaks here
  std::chrono::microseconds delay{0};
};

struct CompletionFault {
  ibv_wc_status status = IBV_WC_GENERAL_ERR;
  std::uint32_t vendor_error = 0;
};

/// Faults on demand, from GDRBENCH_SOFTVERBS_FAULTS: a list, separated by spaces or commas, of
///   fail=VERB:N:ERRNO            the Nth call of a verb fails: fail=ibv_reg_mr:2:ENOMEM,
///   fail=ibv_post_send:5:EINVAL complete=N:STATUS[:VENDOR]   the Nth work request that is posted to a send
///   queue completes so:
///                                complete=7:IBV_WC_RETRY_EXC_ERR:0x81 (the IBV_WC_ may be left out)
///   corrupt=N  drop=N  cut=N     as above, on the Nth message that leaves this process
///   delay=N:TIME                 100us, 5ms, 1s
/// Counts run from 1, one for each verb, over the whole process; N is a number, N- (from there on), N-M, or
/// */K (every Kth). The same calls in the same order meet the same faults. Thread-safe.
class Faults {
 public:
  /// Throws std::invalid_argument naming the item, its place and what is expected.
  static Faults parse(std::string_view text);
  /// From the environment; an error in it is printed to stderr and ends the process with status 2: a fault
  /// that is silently not injected would make a test pass for nothing.
  static Faults& instance();

  Faults(Faults&&) noexcept;
  ~Faults();

  /// Errno value for this call of a verb; 0: it goes through.
  int on_call(std::string_view verb);
  /// For each work request posted to a send queue, in order.
  std::optional<CompletionFault> on_work_request();
  /// For each message that leaves, and each time it leaves again.
  PayloadFault on_payload();
  /// False: nothing is to go wrong, and the calls above are not needed.
  bool any() const;

 private:
  struct Impl;
  explicit Faults(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

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
