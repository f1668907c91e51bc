#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <memory>

#include "nic/device.hpp"
#include "nic/event_queue.hpp"
#include "nic/nic.hpp"

namespace gdrbench::softverbs {

/// How many objects of one kind there are, and may be. Thread-safe.
class Quota {
 public:
  explicit Quota(int limit) : limit_(limit) {}
  /// False: the limit is reached.
  bool take() {
    if (used_.fetch_add(1) < limit_) return true;
    give();
    return false;
  }
  void give() { used_.fetch_sub(1); }
  bool unused() const { return used_.load() == 0; }

 private:
  const int limit_;
  std::atomic<int> used_{0};
};

/// An opened device. Inline verbs find their functions in it: context.ops, and the extended calls of
/// verbs_context (which are seen only with abi_compat = __VERBS_ABI_IS_EXTENDED and sz set).
class Context : public verbs_context {
 public:
  /// Throws std::system_error, std::invalid_argument.
  explicit Context(ibv_device& device);
  ~Context();
  Context(const Context&) = delete;
  /// As verbs_get_ctx, of a context that is one of ours.
  static Context& of(ibv_context* of_context) {
    auto* const place = reinterpret_cast<std::byte*>(of_context) - offsetof(verbs_context, context);
    return *static_cast<Context*>(reinterpret_cast<verbs_context*>(place));
  }

  Nic& nic() { return *nic_; }
  EventQueue<ibv_async_event>& events() { return events_; }
  /// No object is left that refers to it. (Regions, queue pairs and address handles keep their domain.)
  bool unused() const;

  Quota domains{max_domains};
  Quota channels{max_channels};
  Quota completion_queues{max_completion_queues};
  Quota shared_receive_queues{max_shared_receive_queues};
  Quota address_handles{max_address_handles};

 private:
  std::shared_ptr<Nic> nic_;
  EventQueue<ibv_async_event> events_;
};

/// The objects of the application are the library's own classes over the public structs.
class ProtectionDomain : public ibv_pd {
 public:
  explicit ProtectionDomain(ibv_context& of_context) : ibv_pd{&of_context, 0} {}
  static ProtectionDomain& of(ibv_pd* pd) { return *static_cast<ProtectionDomain*>(pd); }

  std::atomic<int> users{
      0};  ///< regions, queue pairs …; while there are any it cannot be deallocated (EBUSY)
};

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
