#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

/// Functions that inline verbs find in the context.
namespace gdrbench::softverbs::operations {

int post_send(ibv_qp* queue_pair, ibv_send_wr* list, ibv_send_wr** bad);
int post_recv(ibv_qp* queue_pair, ibv_recv_wr* list, ibv_recv_wr** bad);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes);

int poll_cq(ibv_cq* queue, int count, ibv_wc* entries);
int req_notify_cq(ibv_cq* queue, int solicited_only);
int post_srq_recv(ibv_srq* queue, ibv_recv_wr* list, ibv_recv_wr** bad);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes);
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes, std::size_t bytes);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attributes, std::size_t bytes);

/// Puts all of them into a context.
void install(verbs_context& context);

}  // namespace gdrbench::softverbs::operations
