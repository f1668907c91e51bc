#include <arpa/inet.h>
#include <gmock/gmock.h>

#include <cstring>

#include "departures.hpp"
#include "end.hpp"

namespace gdrbench::conformance {
namespace {

using testing::ElementsAre;

constexpr std::uint32_t qkey = 0x11111111;
constexpr std::size_t grh_bytes = 40;

class Datagrams : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (std::optional<End>* end : {&left_, &right_}) {
      end->emplace(nic(), EndOptions{.type = IBV_QPT_UD});
      make_ready(**end);
    }
    handle_ = address_handle(nic().self());
  }

  AddressHandle address_handle(ibv_ah_attr address) const {
    return AddressHandle(made(ibv_create_ah(nic().pd.get(), &address), "ibv_create_ah"));
  }
  static Transition ud_init() {
    Transition step;
    step.attr.qp_state = IBV_QPS_INIT;
    step.attr.port_num = port_number;
    step.attr.qkey = qkey;
    step.mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    return step;
  }
  static Transition ud_rts() {
    Transition step = to_state(IBV_QPS_RTS);
    step.mask |= IBV_QP_SQ_PSN;
    return step;
  }
  static void make_ready(const End& end) {
    succeed(modify(end, ud_init()), "ibv_modify_qp to INIT");
    succeed(modify(end, to_state(IBV_QPS_RTR)), "ibv_modify_qp to RTR");
    succeed(modify(end, ud_rts()), "ibv_modify_qp to RTS");
  }

  Datagram to(const End& end, std::uint32_t key = qkey) const { return {handle_.get(), end.number(), key}; }
  // A message of the left's memory, taken by its queue pair.
  void send(const Datagram& where, std::uint64_t id, std::size_t length, ibv_wr_opcode opcode = IBV_WR_SEND,
            std::uint32_t immediate = 0) {
    ASSERT_EQ(post(left_->qp.get(), Send{.opcode = opcode,
                                         .id = id,
                                         .list = {left_->memory.sge(0, length)},
                                         .immediate = immediate,
                                         .datagram = where}),
              0);
    ASSERT_EQ(outcomes(left_->cq.get(), 1), successes(id, 1));
  }
  // Lengths tell messages apart.
  static std::vector<std::size_t> lengths(const End& end, std::size_t count) {
    std::vector<std::size_t> all;
    for (const ibv_wc& completion : take(end.cq.get(), count))
      if (completion.status == IBV_WC_SUCCESS) all.push_back(completion.byte_len - grh_bytes);
    return all;
  }
  void receive(const End& end, unsigned count) const {
    for (std::uint64_t id = 0; id < count; ++id)
      ASSERT_EQ(post(end.qp.get(), Receive{.id = id, .list = {end.memory.sge(id * 8192, 8192)}}), 0);
  }

  std::optional<End> left_, right_;
  AddressHandle handle_;
};

TEST_F(Datagrams, arrive_behind_40_bytes_of_header_and_name_their_sender) {
  const std::size_t mtu = nic().mtu();
  for (const std::size_t length : {std::size_t{1}, std::size_t{333}, mtu - 1, mtu}) {
    SCOPED_TRACE(length);
    left_->memory.fill(0, length, 1);
    right_->memory.fill(0, right_->memory.size(), 2);
    receive(*right_, 1);
    send(to(*right_), 4, length, IBV_WR_SEND_WITH_IMM, 0x01020384);
    const std::vector<ibv_wc> received = take(right_->cq.get(), 1);
    ASSERT_EQ(outcomes(received), successes(0, 1));
    EXPECT_EQ(received[0].opcode, IBV_WC_RECV);
    EXPECT_EQ(received[0].byte_len, grh_bytes + length);
    EXPECT_EQ(received[0].qp_num, right_->number());
    EXPECT_EQ(received[0].src_qp, left_->number());
    EXPECT_EQ(received[0].wc_flags & (IBV_WC_GRH | IBV_WC_WITH_IMM), IBV_WC_GRH | IBV_WC_WITH_IMM);
    EXPECT_EQ(ntohl(received[0].imm_data), 0x01020384);
    EXPECT_TRUE(right_->memory.holds(grh_bytes, length, 1));
    EXPECT_TRUE(right_->memory.is_untouched(2, grh_bytes + length));
  }
}

TEST_F(Datagrams, carry_the_addresses_of_both_ends_in_their_header) {
  receive(*right_, 1);
  send(to(*right_), 1, 8);
  ASSERT_EQ(outcomes(right_->cq.get(), 1), successes(0, 1));
  // IPv6: GIDs at 8 and 24. IPv4: its header fills the last 20 bytes, with addresses at 12 and 16 of it.
  const std::byte* const header = right_->memory.bytes(0, grh_bytes).data();
  const bool is_v6 = std::to_integer<unsigned>(header[0]) >> 4 == 6;
  const std::size_t source = is_v6 ? 8 : 32, size = is_v6 ? 16 : 4;
  if (!is_v6) {
    EXPECT_EQ(std::to_integer<unsigned>(header[20]), 0x45);
  }
  const auto* const own = nic().gid.raw + sizeof nic().gid.raw - size;
  EXPECT_EQ(std::memcmp(header + source, own, size), 0);
  EXPECT_EQ(std::memcmp(header + source + size, own, size), 0);
}

TEST_F(Datagrams, without_immediate_data_say_so) {
  receive(*right_, 1);
  send(to(*right_), 1, 8);
  const std::vector<ibv_wc> received = take(right_->cq.get(), 1);
  ASSERT_EQ(received.size(), 1);
  EXPECT_EQ(received[0].wc_flags & IBV_WC_WITH_IMM, 0);
}

TEST_F(Datagrams, with_another_Q_Key_are_dropped) {
  receive(*right_, 2);
  send(to(*right_, qkey + 1), 1, 100);
  send(to(*right_), 2, 200);
  EXPECT_THAT(lengths(*right_, 1), ElementsAre(200));
  EXPECT_TRUE(is_empty(right_->cq.get()));
}

TEST_F(Datagrams, with_a_Q_Key_whose_top_bit_is_set_use_that_of_their_queue_pair) {
  receive(*right_, 2);
  send(to(*right_, 0x80000000), 1, 100);
  send(to(*right_), 2, 200);
  if (q_key_has_a_privileged_form()) {
    EXPECT_THAT(lengths(*right_, 2), ElementsAre(100, 200));
  } else {
    EXPECT_THAT(lengths(*right_, 1), ElementsAre(200));
  }
}

TEST_F(Datagrams, that_find_no_receive_are_dropped_and_not_kept) {
  for (std::uint64_t id = 0; id < 32; ++id) send(to(*right_), id, 100);
  // What another queue pair of the same end gets behind them shows that they have come and gone.
  End other(nic(), {.type = IBV_QPT_UD});
  make_ready(other);
  receive(other, 1);
  send(to(other), 40, 150);
  ASSERT_THAT(lengths(other, 1), ElementsAre(150));
  receive(*right_, 2);
  send(to(*right_), 41, 200);
  EXPECT_THAT(lengths(*right_, 1), ElementsAre(200));
}

TEST_F(Datagrams, to_a_queue_pair_that_is_not_there_are_lost_without_an_error) {
  send({handle_.get(), 0xfffff0, qkey}, 1, 8);
  receive(*right_, 1);
  send(to(*right_), 2, 100);
  EXPECT_THAT(lengths(*right_, 1), ElementsAre(100));
}

TEST_F(Datagrams, go_from_one_queue_pair_to_many_in_order) {
  End third(nic(), {.type = IBV_QPT_UD});
  make_ready(third);
  receive(*right_, 4);
  receive(third, 4);
  for (std::uint64_t id = 0; id < 8; ++id) send(to(id % 2 == 0 ? *right_ : third), id, 10 + id);
  EXPECT_THAT(lengths(*right_, 4), ElementsAre(10, 12, 14, 16));
  EXPECT_THAT(lengths(third, 4), ElementsAre(11, 13, 15, 17));
}

TEST_F(Datagrams, are_answered_with_the_address_of_their_completion) {
  receive(*right_, 1);
  receive(*left_, 1);
  send(to(*right_), 1, 8);
  std::vector<ibv_wc> received = take(right_->cq.get(), 1);
  ASSERT_EQ(outcomes(received), successes(0, 1));
  auto* const header = reinterpret_cast<ibv_grh*>(right_->memory.bytes(0, grh_bytes).data());
  ibv_ah_attr address{};
  ASSERT_EQ(ibv_init_ah_from_wc(nic().context.get(), port_number, received.data(), header, &address), 0);
  EXPECT_EQ(address.is_global, 1);
  EXPECT_EQ(address.port_num, port_number);
  EXPECT_EQ(std::memcmp(&address.grh.dgid, &nic().gid, sizeof(ibv_gid)), 0);
  const AddressHandle back(made(ibv_create_ah_from_wc(nic().pd.get(), received.data(), header, port_number),
                                "ibv_create_ah_from_wc"));
  ASSERT_EQ(post(right_->qp.get(), Send{.id = 9,
                                        .list = {right_->memory.sge(0, 77)},
                                        .datagram = {back.get(), received[0].src_qp, qkey}}),
            0);
  EXPECT_EQ(outcomes(right_->cq.get(), 1), successes(9, 1));
  EXPECT_THAT(lengths(*left_, 1), ElementsAre(77));
}

TEST_F(Datagrams, larger_than_the_MTU_are_not_delivered) {
  receive(*right_, 2);
  const std::size_t length = nic().mtu() + 1;
  // The specification forbids an error; devices report a local length error, or refuse the request, all the
  // same.
  if (post(left_->qp.get(), Send{.id = 1, .list = {left_->memory.sge(0, length)}, .datagram = to(*right_)}) ==
      0) {
    const std::vector<Outcome> outcome = outcomes(left_->cq.get(), 1);
    ASSERT_EQ(outcome.size(), 1);
    EXPECT_THAT(outcome[0].status, testing::AnyOf(IBV_WC_SUCCESS, IBV_WC_LOC_LEN_ERR));
  }
  End other(nic(), {.type = IBV_QPT_UD});
  make_ready(other);
  ASSERT_EQ(post(other.qp.get(), Send{.list = {other.memory.sge(0, 100)}, .datagram = to(*right_)}), 0);
  EXPECT_THAT(lengths(*right_, 1), ElementsAre(100));
}

TEST_F(Datagrams, take_addresses_that_the_port_can_have_only) {
  const auto create = [this](ibv_ah_attr address) {
    errno = 0;
    const AddressHandle handle(ibv_create_ah(nic().pd.get(), &address));
    return handle ? 0 : errno;
  };
  ibv_ah_attr address = nic().self();
  EXPECT_EQ(create(address), 0);
  address.is_global = 0;
  EXPECT_NE(create(address), 0) << "RoCE needs a GRH";
  address = nic().self();
  address.port_num = 2;
  EXPECT_NE(create(address), 0);
  address = nic().self();
  address.grh.sgid_index = 255;
  EXPECT_NE(create(address), 0);
}

TEST_F(Datagrams, need_a_Q_Key_to_be_set_up) {
  const End end(nic(), {.type = IBV_QPT_UD});
  Transition step = ud_init();
  step.mask &= ~IBV_QP_QKEY;
  EXPECT_EQ(modify(end, step), EINVAL);
  EXPECT_EQ(modify(end, ud_init()), 0);
  EXPECT_EQ(modify(end, ud_rts()), EINVAL) << "not before ready to receive";
}

TEST_F(Datagrams, are_flushed_in_the_error_state) {
  receive(*right_, 2);
  ASSERT_EQ(modify(*right_, to_state(IBV_QPS_ERR)), 0);
  EXPECT_THAT(outcomes(right_->cq.get(), 2),
              ElementsAre(Outcome{0, IBV_WC_WR_FLUSH_ERR}, Outcome{1, IBV_WC_WR_FLUSH_ERR}));
}

}  // namespace
}  // namespace gdrbench::conformance
