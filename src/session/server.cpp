#include "session/server.hpp"

#include <fmt/format.h>

#include <atomic>
#include <list>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "gdrbench/error.hpp"
#include "session/server_session.hpp"

namespace gdrbench::session {
namespace {

/// A session and the thread that serves it.
struct ServingThread {
  explicit ServingThread(Acceptor::Client session) : client(std::move(session)) {}

  Acceptor::Client client;
  std::atomic<bool> done{false};
  std::thread thread;
};

void join_done(std::list<ServingThread>& threads) {
  threads.remove_if([](ServingThread& serving) {
    if (!serving.done) return false;
    serving.thread.join();
    return true;
  });
}

}  // namespace

ServerCore::ServerCore(ServeOptions options, Harness harness)
    : harness_(std::move(harness)),
      max_payload_bytes_(options.max_payload_bytes != 0 ? options.max_payload_bytes
                                                        : half_of_available_memory()),
      max_queue_pairs_(options.max_queue_pairs),
      idle_limit_(options.idle_limit),
      examine_(std::move(options.examine)),
      log_(std::move(options.log)),
      listener_({options.bind, options.port}),
      acceptor_(
          listener_, std::move(options.key),
          [this](const std::string& address) {
            return std::make_shared<Visit>(address,
                                           std::make_shared<Limits>(max_payload_bytes_, max_queue_pairs_));
          },
          data_connections_, log_) {}

void ServerCore::run(int visits) {
  std::list<ServingThread> threads;
  acceptor_.start(visits);
  while (std::optional<Acceptor::Client> client = acceptor_.next()) {
    join_done(threads);
    ServingThread& serving = threads.emplace_back(std::move(*client));
    try {
      serving.thread = std::thread([this, &serving] {
        serve(serving.client);
        // Before the client's socket closes, which tells it that the server is free again.
        acceptor_.leave(serving.client);
        serving.client.socket = {};
        serving.done = true;
      });
    } catch (const std::system_error& fault) {
      log_(fmt::format("{} dropped: starting a thread: {}", serving.client.address, fault.what()));
      acceptor_.leave(serving.client);
      threads.pop_back();
    }
  }
  for (ServingThread& serving : threads) serving.thread.join();
  acceptor_.end();
}

void ServerCore::serve(Acceptor::Client& client) {
  try {
    ServerSession session(harness_, {idle_limit_, examine_}, data_connections_, log_, client);
    session.serve();
    log_(fmt::format("{} left", client.address));
  } catch (const Interrupted&) {
    log_(fmt::format("{} dropped: the server ends", client.address));
  } catch (const std::exception& fault) {
    log_(fmt::format("{} lost: {}", client.address, fault.what()));
  }
}

}  // namespace gdrbench::session
