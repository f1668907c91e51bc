#include <cerrno>

#include "gdrbench/error.hpp"
#include "measure/runner.hpp"
#include "path/layout.hpp"
#include "path/staging_layout.hpp"

namespace gdrbench::measure {
namespace {

void grow(std::shared_ptr<Buffer>& buffer, const BufferOptions& wanted) {
  const bool fits = buffer && buffer->kind() == wanted.kind && buffer->gpu() == wanted.gpu &&
                    buffer->size() >= wanted.length;
  if (!fits) {
    buffer
        .reset();  // an open case may still hold it; otherwise its memory is free again before more is taken
    try {
      buffer = std::make_shared<Buffer>(wanted);
    } catch (const SystemError& error) {
      // Too large for this machine, as for the other end's limits: the case cannot be had, others can.
      if (error.code() == ENOMEM) throw Unavailable(error.what());
      throw;
    }
  }
}

}  // namespace

std::uint64_t payload_bytes(const Case& c) {
  std::uint64_t sides = 0;
  for (const bool initiator : {true, false}) {
    const path::Flow flow = path::flow_of(c, initiator);
    const std::uint64_t mine =
        (path::needs_outgoing(c, flow) ? 1 : 0) + (path::needs_incoming(c, flow) ? 1 : 0);
    sides = std::max(sides, mine);
  }
  return sides * path::layout_of(c).bytes();
}

std::uint64_t bounce_bytes(const Case& c) {
  return is_staged(c.path) ? path::staging_layout(c).bytes() * c.queue_pairs : 0;
}

void provide_payload(const Case& c, path::Flow flow, Payload& payload) {
  const BufferOptions wanted{.kind = is_baseline(c.path) ? MemoryKind::host : c.memory,
                             .length = path::layout_of(c).bytes(),
                             .gpu = c.gpu};
  if (path::needs_outgoing(c, flow)) grow(payload.outgoing, wanted);
  if (path::needs_incoming(c, flow)) grow(payload.incoming, wanted);
}

}  // namespace gdrbench::measure
