#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "measure/runner.hpp"

namespace gdrbench::measure {

using namespace std::chrono_literals;

using MakeRunner = std::unique_ptr<Runner> (*)(const Case&, Role, Payload&);

/// What connect() gets where the other rank is this one.
inline std::vector<RankLink> link_to(std::size_t rank, nlohmann::json offer,
                                     std::vector<wire::Socket> sockets = {}) {
  std::vector<RankLink> links(2);
  links[rank] = {std::move(offer), std::move(sockets)};
  return links;
}

/// Both ends of a case in this process, each in a thread of its own, joined by real sockets.
class TwoEnds {
 public:
  explicit TwoEnds(const Case& c, MakeRunner make = make_runner)
      : initiator_(make(c, Role::initiator, initiator_payload)),
        responder_(make(c, Role::responder, responder_payload)) {
    wire::Listener listener({"127.0.0.1", 0});
    std::vector<wire::Socket> ours, theirs;
    for (std::uint32_t queue_pair = 0; queue_pair < c.queue_pairs; ++queue_pair) {
      ours.push_back(wire::connect_tcp({"127.0.0.1", listener.port()}, after(5s)));
      theirs.push_back(listener.accept(after(5s)));
    }
    initiator_->connect(link_to(1, responder_->offer(), std::move(ours)));
    responder_->connect(link_to(0, initiator_->offer(), std::move(theirs)));
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, control_), 0);
  }
  ~TwoEnds() {
    for (const int fd : control_) close(fd);
  }

  RankResult run(const RunRequest& request) {
    initiator_->prepare(request);
    responder_->prepare(request);
    RankResult responder_result;
    std::thread responder([&] {
      Watch watch(control_[1], 10s);
      responder_result = responder_->run(watch);
    });
    Watch watch(control_[0], 10s);
    RankResult result = initiator_->run(watch);
    const char finish = 'f';
    EXPECT_EQ(write(control_[0], &finish, 1), 1);
    responder.join();
    char read_back = 0;
    EXPECT_EQ(read(control_[1], &read_back, 1), 1);
    return result;
  }
  std::string faults() { return initiator_->verify() + responder_->verify(); }

  Payload initiator_payload, responder_payload;

 private:
  std::unique_ptr<Runner> initiator_, responder_;
  int control_[2] = {-1, -1};
};

}  // namespace gdrbench::measure
