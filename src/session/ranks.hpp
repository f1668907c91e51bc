#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.hpp"
#include "session/channel.hpp"
#include "session/client.hpp"

namespace gdrbench::session {

/// What a rank says, or what is known, of a failure.
struct Fault {
  ErrorKind kind;
  std::string text;
  bool said = false;  ///< by its server, in an "error" message in place of the answer that was due
  bool is_loss() const { return kind == ErrorKind::lost && !said; }
  bool is_flush() const;
};

/// Thrown where a remote rank's fault, kept with the rank, ends a run.
class RemoteFault : public Error {
 public:
  RemoteFault() : Error("another rank failed") {}
};

/// One rank of a case, as the client that directs it sees it.
struct Rank {
  std::shared_ptr<Client> client;  ///< null: in this process
  Case c;
  std::string name;  ///< "initiator", "responder node-b:7471"
  std::uint64_t id = 0;
  std::optional<Fault> fault{};  ///< in the present step
};

/// The ranks of a case, and what is said to and by their servers. A server that fails to answer, or answers
/// with an error, is kept as a fault of its rank: so every answer that is due is read, whatever happens, and
/// the control channels stay in step.
class Ranks {
 public:
  /// At most one in this process, the others in a session each. Throws UsageError.
  explicit Ranks(std::vector<Place> places);

  std::size_t size() const { return ranks_.size(); }
  Rank& operator[](std::size_t rank) { return ranks_[rank]; }
  const Rank& operator[](std::size_t rank) const { return ranks_[rank]; }
  auto begin() { return ranks_.begin(); }
  auto end() { return ranks_.end(); }
  bool is_local(std::size_t rank) const { return !ranks_[rank].client; }
  /// The rank in this process.
  std::optional<std::size_t> local() const { return local_; }
  /// The first session, whose options hold where one session's must.
  Client& lead() const { return *lead_; }
  /// Readable when any of the control channels is.
  int channels_fd() const { return channels_.get(); }
  /// Which of two ranks opens the TCP connections between them, to the port of the other's server: one in
  /// this process, which has no port, else the lower. A server that this client reaches by a loopback
  /// address, though not the other one, opens them itself: the other could not reach it so.
  bool dials(std::size_t from, std::size_t to) const;

  /// Nothing for the rank in this process and for ranks with a fault.
  void send(Rank& rank, const nlohmann::json& message);
  void send_all(const nlohmann::json& message);
  /// The next message; none where that is an error, or the server is lost.
  std::optional<nlohmann::json> receive(Rank& rank, std::chrono::milliseconds patience);
  /// By rank; that of a rank with a fault is null.
  std::vector<nlohmann::json> answers(std::string_view type);
  /// Ends the loops of a run. A server that has told of its fault says no more; every other one gives one
  /// last answer.
  void abort(const std::string& why, std::chrono::milliseconds patience);
  void try_send_all(nlohmann::json message);

  void clear_faults();
  void keep(Rank& rank, Fault fault) const;
  void keep_local(const std::exception& error) { keep(ranks_[*local_], {kind_of(error), error.what()}); }
  bool has_fault() const;
  void throw_remote_fault() const;
  /// Before a case is connected: the reasons of all ranks, as the kind of error that the first of them is.
  [[noreturn]] void throw_faults() const;
  /// What all ranks know of a failure, in one text, a lost one first: what others saw follows from it.
  /// Flushes are left out beside a cause.
  std::string account() const;

 private:
  std::vector<Rank> ranks_;
  std::optional<std::size_t> local_;
  Client* lead_ = nullptr;
  FileDescriptor channels_;
};

}  // namespace gdrbench::session
