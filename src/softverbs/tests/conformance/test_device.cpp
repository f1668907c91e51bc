#include <gmock/gmock.h>

#include <cstring>

#include "end.hpp"

namespace gdrbench::conformance {
namespace {

class Device : public Conformance {};

TEST_F(Device, is_in_a_list_that_ends_with_null_and_says_how_long_it_is) {
  int count = -1, found = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  ASSERT_NE(list, nullptr);
  int length = 0;
  for (; list[length] != nullptr; ++length)
    if (device_name() == ibv_get_device_name(list[length])) ++found;
  ibv_free_device_list(list);
  EXPECT_EQ(length, count);
  EXPECT_EQ(found, 1);
}

TEST_F(Device, can_be_opened_twice) {
  const Nic other;
  EXPECT_NE(other.context.get(), nic().context.get());
  EXPECT_EQ(device_name(), ibv_get_device_name(other.context->device));
}

TEST_F(Device, keeps_protection_domains_of_two_contexts_apart) {
  const Nic other;
  const End end(other);
  ibv_qp_init_attr init = small_queue_pair(end.cq.get(), end.cq.get());
  ibv_qp* const qp = ibv_create_qp(nic().pd.get(), &init);
  if (qp != nullptr) ibv_destroy_qp(qp);
  EXPECT_EQ(qp, nullptr) << "a queue pair took the completion queue of another context";
}

TEST_F(Device, says_the_same_in_both_queries) {
  ibv_device_attr_ex extended{};
  ASSERT_EQ(ibv_query_device_ex(nic().context.get(), nullptr, &extended), 0);
  const ibv_device_attr &a = nic().attributes, &b = extended.orig_attr;
  EXPECT_EQ(a.node_guid, b.node_guid);
  EXPECT_EQ(a.max_qp, b.max_qp);
  EXPECT_EQ(a.max_qp_wr, b.max_qp_wr);
  EXPECT_EQ(a.max_sge, b.max_sge);
  EXPECT_EQ(a.max_cqe, b.max_cqe);
  EXPECT_EQ(a.max_qp_rd_atom, b.max_qp_rd_atom);
  EXPECT_EQ(a.device_cap_flags, b.device_cap_flags);
  EXPECT_EQ(a.phys_port_cnt, b.phys_port_cnt);
  EXPECT_EQ(ibv_get_device_guid(nic().context->device), a.node_guid);
}

TEST_F(Device, advertises_limits_that_programs_can_live_with) {
  const ibv_device_attr& a = nic().attributes;
  for (const int limit : {a.max_qp, a.max_qp_wr, a.max_sge, a.max_cq, a.max_cqe, a.max_mr, a.max_pd, a.max_ah,
                          a.max_qp_rd_atom, a.max_qp_init_rd_atom, a.max_srq, a.max_srq_wr, a.max_srq_sge})
    EXPECT_GE(limit, 1);
  EXPECT_GE(a.max_sge, 2);
  EXPECT_GE(a.max_mr_size, std::uint64_t{1} << 30);
  EXPECT_EQ(a.phys_port_cnt, 1);
  EXPECT_NE(a.atomic_cap, IBV_ATOMIC_NONE);
  EXPECT_GE(nic().context->num_comp_vectors, 1);
}

TEST_F(Device, has_an_active_ethernet_port_with_a_message_size_and_an_mtu) {
  const ibv_port_attr& port = nic().port;
  EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
  EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
  EXPECT_GE(port.active_mtu, IBV_MTU_256);
  EXPECT_LE(port.active_mtu, port.max_mtu);
  EXPECT_LE(port.max_mtu, IBV_MTU_4096);
  EXPECT_GT(port.max_msg_sz, std::uint32_t{1} << 20);
  EXPECT_GE(port.gid_tbl_len, 1);
  EXPECT_GE(port.pkey_tbl_len, 1);
}

TEST_F(Device, has_no_port_but_its_own) {
  ibv_port_attr port{};
  EXPECT_NE(ibv_query_port(nic().context.get(), 0, &port), 0);
  EXPECT_NE(ibv_query_port(nic().context.get(), 2, &port), 0);
}

TEST_F(Device, gives_a_gid_alike_in_all_three_queries) {
  ibv_gid single{};
  ASSERT_EQ(ibv_query_gid(nic().context.get(), port_number, nic().gid_index, &single), 0);
  EXPECT_EQ(std::memcmp(&single, &nic().gid, sizeof single), 0);
  std::vector<ibv_gid_entry> table(static_cast<std::size_t>(nic().port.gid_tbl_len));
  const ssize_t count = ibv_query_gid_table(nic().context.get(), table.data(), table.size(), 0);
  ASSERT_GE(count, 1);
  ASSERT_LE(count, nic().port.gid_tbl_len);
  int found = 0;
  for (const ibv_gid_entry& entry : std::span(table).first(static_cast<std::size_t>(count))) {
    EXPECT_EQ(entry.port_num, port_number);
    ibv_gid_entry again{};
    ASSERT_EQ(ibv_query_gid_ex(nic().context.get(), port_number, entry.gid_index, &again, 0), 0);
    EXPECT_EQ(std::memcmp(&entry.gid, &again.gid, sizeof again.gid), 0);
    EXPECT_EQ(entry.gid_type, again.gid_type);
    EXPECT_EQ(entry.ndev_ifindex, again.ndev_ifindex);
    if (entry.gid_index != static_cast<std::uint32_t>(nic().gid_index)) continue;
    ++found;
    EXPECT_EQ(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
    EXPECT_EQ(std::memcmp(&entry.gid, &single, sizeof single), 0);
  }
  EXPECT_EQ(found, 1);
}

TEST_F(Device, refuses_gids_beyond_its_table) {
  ibv_gid gid{};
  ibv_gid_entry entry{};
  const int beyond = nic().port.gid_tbl_len;
  EXPECT_NE(ibv_query_gid(nic().context.get(), port_number, beyond, &gid), 0);
  EXPECT_NE(ibv_query_gid_ex(nic().context.get(), port_number, static_cast<std::uint32_t>(beyond), &entry, 0),
            0);
}

TEST_F(Device, has_the_default_partition_key) {
  __be16 pkey = 0;
  ASSERT_EQ(ibv_query_pkey(nic().context.get(), port_number, 0, &pkey), 0);
  EXPECT_EQ(pkey, 0xffff);
}

TEST_F(Device, grants_a_queue_pair_what_it_asks_for_at_least_and_says_so) {
  const End end(nic(), {.send_slots = 33, .receive_slots = 17, .list_length = 3, .inline_bytes = 50});
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(end.qp.get(), &attr, IBV_QP_CAP, &init), 0);
  EXPECT_GE(init.cap.max_send_wr, 33);
  EXPECT_GE(init.cap.max_recv_wr, 17);
  EXPECT_GE(init.cap.max_send_sge, 3);
  EXPECT_GE(init.cap.max_recv_sge, 3);
  EXPECT_GE(init.cap.max_inline_data, 50);
  EXPECT_EQ(init.qp_type, IBV_QPT_RC);
  EXPECT_EQ(init.send_cq, end.cq.get());
  EXPECT_EQ(init.recv_cq, end.cq.get());
  EXPECT_EQ(init.sq_sig_all, 0);
  EXPECT_GE(end.cq->cqe, end.options.completions);
}

TEST_F(Device, numbers_its_queue_pairs_apart_in_24_bits) {
  const End first(nic()), second(nic());
  EXPECT_NE(first.number(), second.number());
  EXPECT_EQ(first.number() >> 24, 0);
  EXPECT_GT(first.number(), 1) << "0 and 1 are for management";
}

}  // namespace
}  // namespace gdrbench::conformance
