#include "stress_side.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <span>
#include <thread>
#include <unordered_map>

namespace gdrbench::softverbs {
namespace {

using Clock = Initiator::Clock;
constexpr std::chrono::seconds connect_timeout{60};  ///< sanitizers and emulated machines are slow

struct Socket {
  int descriptor;

  explicit Socket(int open) : descriptor(open) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { close(descriptor); }

  /// Sends as many bytes as it waits for: an exchange, and a barrier.
  template <class T>
  void exchange(std::span<const T> own, std::span<T> remote) const {
    const auto sent = std::as_bytes(own);
    const auto received = std::as_writable_bytes(remote);
    if (send(descriptor, sent.data(), sent.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(sent.size()) ||
        recv(descriptor, received.data(), received.size(), MSG_WAITALL) !=
            static_cast<ssize_t>(received.size()))
      throw std::runtime_error("the other side is gone");
  }
  void meet() const {
    char byte = 0, other = 0;
    exchange<char>({&byte, 1}, {&other, 1});
  }
};

MemoryRegion register_memory(ibv_pd* pd, void* memory, std::size_t size_bytes, unsigned access) {
  return MemoryRegion{
      check_made(ibv_reg_mr(pd, memory, size_bytes, IBV_ACCESS_LOCAL_WRITE | access), "register memory")};
}

constexpr unsigned remote_access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

/// One end of a pair. The queue pair ends before the memory that it uses.
struct End {
  std::vector<std::byte> source = std::vector<std::byte>(ring_bytes);
  std::vector<std::byte> target = std::vector<std::byte>(ring_bytes);
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(1);
  MemoryRegion source_region, target_region, words_region;
  QueuePair qp;
  std::uint32_t inline_bytes = 0;
  std::optional<Initiator> initiator;
  std::optional<Responder> responder;

  End(ibv_pd* pd, ibv_cq* cq, const Limits& limits)
      : source_region(register_memory(pd, source.data(), ring_bytes, 0)),
        target_region(register_memory(pd, target.data(), ring_bytes, remote_access)),
        words_region(register_memory(pd, words.data(), sizeof(words[0]), IBV_ACCESS_REMOTE_ATOMIC)) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq;
    init.cap = {queue_depth, queue_depth, limits.pieces, limits.pieces, 128};
    init.qp_type = IBV_QPT_RC;
    qp.reset(check_made(ibv_create_qp(pd, &init), "create a queue pair"));
    inline_bytes = init.cap.max_inline_data;
  }

  void take(const ibv_wc& completion) {
    if (completion.status != IBV_WC_SUCCESS)
      throw std::runtime_error(
          fmt::format("{}{}: completed with status {} ({}), vendor error {:#x}",
                      completion.wr_id & receive_flag ? "receive of message " : "message ",
                      completion.wr_id & ~receive_flag, int{completion.status},
                      ibv_wc_status_str(completion.status), completion.vendor_err));
    if (completion.wr_id & receive_flag)
      responder->receive(completion);
    else
      initiator->complete(completion);
  }

  /// True where anything could be done.
  bool advance(Clock::time_point deadline) {
    bool busy = false;
    while (responder->prepare()) busy = true;
    while (initiator->post(deadline)) busy = true;
    return busy;
  }
  bool done() const { return initiator->done() && responder->done(); }
};

/// The pairs of one thread.
struct Poller {
  CompletionQueue cq;
  std::vector<std::unique_ptr<End>> ends;
  std::unordered_map<std::uint32_t, End*> by_number;

  bool poll() {
    std::array<ibv_wc, 32> completions;
    const int count = ibv_poll_cq(cq.get(), static_cast<int>(completions.size()), completions.data());
    if (count < 0) throw std::runtime_error(fmt::format("poll the completion queue: returned {}", count));
    for (const ibv_wc& completion : std::span(completions).first(static_cast<std::size_t>(count)))
      by_number.at(completion.qp_num)->take(completion);
    return count > 0;
  }

  std::string progress() const {
    std::string text;
    for (const auto& end : ends)
      if (!end->done())
        text += fmt::format("\n  {}\n  {}", end->initiator->progress(), end->responder->progress());
    return text;
  }

  void run(Clock::time_point deadline, const std::atomic<bool>& failed) {
    auto last_progress = Clock::now();
    for (bool done = false; !done && !failed;) {
      bool busy = poll();
      done = true;
      for (const auto& end : ends) {
        busy |= end->advance(deadline);
        done &= end->done();
      }
      if (busy) {
        last_progress = Clock::now();
        continue;
      }
      if (Clock::now() - last_progress > connect_timeout)
        throw std::runtime_error(
            fmt::format("nothing happened for {} s:{}", connect_timeout.count(), progress()));
      std::this_thread::yield();
    }
    if (std::array<ibv_wc, 1> more; !failed && ibv_poll_cq(cq.get(), 1, more.data()) != 0)
      throw std::runtime_error(fmt::format("one completion too many: wr_id {:#x}", more[0].wr_id));
  }
};

class Side {
 public:
  Side(std::uint32_t side, const Settings& settings, Shared& shared)
      : side_(side),
        settings_(settings),
        shared_(shared),
        context_(open_device(settings.device)),
        pd_(check_made(ibv_alloc_pd(context_.get()), "allocate a protection domain")),
        sum_region_(register_memory(pd_.get(), sum_.data(), sizeof(sum_[0]), IBV_ACCESS_REMOTE_ATOMIC)),
        pollers_(settings.pollers) {
    const std::uint32_t each = (settings.pairs + settings.pollers - 1) / settings.pollers;
    for (Poller& poller : pollers_)
      poller.cq.reset(check_made(
          ibv_create_cq(context_.get(), static_cast<int>(2 * queue_depth * each), nullptr, nullptr, 0),
          "create a completion queue"));
  }

  void connect_ends(const Socket& socket) {
    const Limits limits = Limits::of(context_.get());
    const Address address = find_address(context_.get());
    std::vector<Endpoint> own, remotes(settings_.pairs);
    for (std::uint32_t pair = 0; pair < settings_.pairs; ++pair) {
      Poller& poller = pollers_[pair % pollers_.size()];
      End& end = *poller.ends.emplace_back(std::make_unique<End>(pd_.get(), poller.cq.get(), limits));
      poller.by_number[end.qp->qp_num] = &end;
      own.push_back(
          {address, end.qp->qp_num, static_cast<std::uint32_t>(mix(settings_.seed + pair)) & 0xffffff,
           reinterpret_cast<std::uint64_t>(end.target.data()),
           reinterpret_cast<std::uint64_t>(end.words.data()), reinterpret_cast<std::uint64_t>(sum_.data()),
           end.target_region->rkey, end.words_region->rkey, sum_region_->rkey});
    }
    socket.exchange<Endpoint>(own, remotes);
    for (std::uint32_t pair = 0; pair < settings_.pairs; ++pair) {
      End& end = *pollers_[pair % pollers_.size()].ends[pair / pollers_.size()];
      connect(end.qp.get(), limits, own[pair], remotes[pair]);
      end.initiator.emplace(Stream::make(settings_.seed, pair, side_), shared_.gates[pair][side_],
                            shared_.totals, end.qp.get(), Local{end.source.data(), end.source_region->lkey},
                            remotes[pair], limits.pieces, end.inline_bytes);
      end.responder.emplace(Stream::make(settings_.seed, pair, 1 - side_), shared_.gates[pair][1 - side_],
                            end.qp.get(), Local{end.target.data(), end.target_region->lkey}, limits.pieces);
    }
    socket.meet();
  }

  void run() {
    const auto deadline = Clock::now() + settings_.duration;
    std::vector<std::exception_ptr> faults(pollers_.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < pollers_.size(); ++i)
        threads.emplace_back([&, i] {
          try {
            pollers_[i].run(deadline, shared_.failed);
          } catch (...) {
            faults[i] = std::current_exception();
            shared_.failed = true;
          }
        });
    }
    for (const auto& fault : faults)
      if (fault) std::rethrow_exception(fault);
    if (shared_.failed) throw std::runtime_error("stopped by a fault elsewhere");
  }

  /// To be called when neither side has anything in flight.
  void check_words() const {
    const auto check = [](std::uint64_t found, std::uint64_t expected, const std::string& what) {
      if (found != expected)
        throw std::runtime_error(fmt::format("{}: expected {:#x}, found {:#x}", what, expected, found));
    };
    check(sum_[0], shared_.totals.added[1 - side_], "final sum of all fetch_add");
    for (std::uint32_t pair = 0; pair < settings_.pairs; ++pair)
      check(pollers_[pair % pollers_.size()].ends[pair / pollers_.size()]->words[0],
            shared_.gates[pair][1 - side_].swapped, fmt::format("final cmp_swap word of pair {}", pair));
  }

 private:
  std::uint32_t side_;
  const Settings& settings_;
  Shared& shared_;
  std::vector<std::uint64_t> sum_ = std::vector<std::uint64_t>(1);
  Context context_;
  ProtectionDomain pd_;
  MemoryRegion sum_region_;
  std::vector<Poller> pollers_;
};

}  // namespace

bool run_side(std::uint32_t side, const Settings& settings, Shared& shared, int socket) noexcept {
  const Socket remote{socket};
  try {
    Side ends{side, settings, shared};
    ends.connect_ends(remote);
    ends.run();
    remote.meet();
    ends.check_words();
    return true;
  } catch (const std::exception& fault) {
    shared.failed = true;
    fmt::print(stderr, "softverbs_stress: {} side: {}\n", side == 0 ? "left" : "right", fault.what());
    return false;
  }
}

}  // namespace gdrbench::softverbs
