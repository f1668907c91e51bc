#include "session/server_core.hpp"

#include <fmt/format.h>

#include <utility>

#include "gdrbench/error.hpp"
#include "session/server_session.hpp"

namespace gdrbench::session {

ServerCore::ServerCore(ServeOptions options, Harness harness)
    : harness_(std::move(harness)),
      max_payload_bytes_(options.max_payload_bytes != 0 ? options.max_payload_bytes
                                                        : half_of_available_memory()),
      max_queue_pairs_(options.max_queue_pairs),
      idle_limit_(options.idle_limit),
      examine_(std::move(options.examine)),
      log_(std::move(options.log)),
      listener_({options.bind, options.port}),
      acceptor_(listener_, std::move(options.key), lanes_, log_) {}

void ServerCore::run(int sessions) {
  acceptor_.start();
  for (int served = 0; sessions <= 0 || served < sessions; ++served) {
    std::optional<Acceptor::Client> client = acceptor_.next();
    if (!client) break;
    serve(*client);
    // Before the client's socket closes, which tells it that the server is free again.
    acceptor_.release();
  }
  acceptor_.end();
}

void ServerCore::serve(Acceptor::Client& client) {
  try {
    ServerSession session({max_payload_bytes_, max_queue_pairs_, idle_limit_, examine_}, harness_, lanes_,
                          log_, client.socket, client.address);
    session.serve();
    log_(fmt::format("{} left", client.address));
  } catch (const Interrupted&) {
    log_(fmt::format("{} dropped: the server ends", client.address));
  } catch (const std::exception& fault) {
    log_(fmt::format("{} lost: {}", client.address, fault.what()));
  }
}

}  // namespace gdrbench::session
