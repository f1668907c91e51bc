#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "link/handshake.hpp"
#include "link/stream_socket.hpp"
#include "nic/device.hpp"

namespace gdrbench::softverbs {
namespace {

using namespace std::chrono_literals;

// Connections to the process of a queue pair that say nothing: as many as a listener waits for.
std::vector<Descriptor> silent_connections(const ibv_gid& gid, std::uint32_t qpn) {
  std::vector<Descriptor> connections;
  const sockaddr_in6 address = address_of(gid, slot_of(qpn), host_gids().front().interface);
  for (int i = 0; i < 256; ++i) {
    Descriptor socket = open_stream_socket();
    connect_to(socket, address);
    connections.push_back(std::move(socket));
  }
  std::this_thread::sleep_for(100ms);  // they are accepted
  return connections;
}

void connect_to_itself(ibv_qp* qp, const ibv_gid& gid) {
  ibv_qp_attr to{};
  to.qp_state = IBV_QPS_INIT;
  to.port_num = 1;
  to.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  ASSERT_EQ(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
  to.qp_state = IBV_QPS_RTR;
  to.path_mtu = IBV_MTU_1024;
  to.dest_qp_num = qp->qp_num;
  to.ah_attr.is_global = 1;
  to.ah_attr.port_num = 1;
  to.ah_attr.grh.dgid = gid;
  ASSERT_EQ(ibv_modify_qp(qp, &to,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            0);
  to.qp_state = IBV_QPS_RTS;
  to.timeout = 18;  // 1 s
  to.retry_cnt = 7;
  ASSERT_EQ(ibv_modify_qp(qp, &to,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
            0);
}

TEST(SoftverbsBusyRemote, IsCalledAgainUntilItAnswers) {
  ibv_device** const devices = ibv_get_device_list(nullptr);
  ibv_context* const context = ibv_open_device(devices[0]);
  ASSERT_NE(context, nullptr);
  ibv_pd* const domain = ibv_alloc_pd(context);
  std::array<std::byte, 64> memory{};
  ibv_mr* const region =
      ibv_reg_mr(domain, memory.data(), memory.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  ibv_cq* const queue = ibv_create_cq(context, 4, nullptr, nullptr, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = queue;
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  ibv_qp* const qp = ibv_create_qp(domain, &init);
  ibv_gid gid{};
  ASSERT_EQ(ibv_query_gid(context, 1, 0, &gid), 0);

  std::vector<Descriptor> connections = silent_connections(gid, qp->qp_num);
  connect_to_itself(qp, gid);
  ibv_sge list{reinterpret_cast<std::uintptr_t>(memory.data()), 8, region->lkey};
  ibv_send_wr write{};
  write.sg_list = &list;
  write.num_sge = 1;
  write.opcode = IBV_WR_RDMA_WRITE;
  write.send_flags = IBV_SEND_SIGNALED;
  write.wr.rdma = {.remote_addr = list.addr + 8, .rkey = region->rkey};
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(qp, &write, &bad), 0);
  ibv_wc done{};
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(ibv_poll_cq(queue, 1, &done), 0) << "the remote is busy: neither done nor failed";
  connections.clear();
  for (const auto until = Clock::now() + 20s; ibv_poll_cq(queue, 1, &done) == 0 && Clock::now() < until;) {
  }
  EXPECT_EQ(done.opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(done.status, IBV_WC_SUCCESS);

  EXPECT_EQ(ibv_destroy_qp(qp), 0);
  EXPECT_EQ(ibv_destroy_cq(queue), 0);
  EXPECT_EQ(ibv_dereg_mr(region), 0);
  EXPECT_EQ(ibv_dealloc_pd(domain), 0);
  EXPECT_EQ(ibv_close_device(context), 0);
  ibv_free_device_list(devices);
}

}  // namespace
}  // namespace gdrbench::softverbs
