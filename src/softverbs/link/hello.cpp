#include "link/hello.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace gdrbench::softverbs {
namespace {

constexpr std::uint32_t bits_24 = (1U << 24) - 1;

// Both are copied to and from the socket as they are: no padding, no pointer.
static_assert(std::has_unique_object_representations_v<Locality> && sizeof(Locality) == 80);
static_assert(std::is_trivially_copyable_v<Hello> && sizeof(Hello) == 144);
static_assert(std::has_unique_object_representations_v<Reply> && sizeof(Reply) == 104);

bool well_formed(const Locality& locality) {
  return locality.boot_id.back() == '\0' && locality.pid >= 0 && locality.doorbell >= -1 &&
         locality.rings >= -1;
}

}  // namespace

const char* to_string(Refusal refusal) {
  switch (refusal) {
    case Refusal::none:
      return "not refused";
    case Refusal::malformed:
      return "the peer does not speak this version of softverbs";
    case Refusal::no_queue_pair:
      return "the peer has no queue pair of that number";
    case Refusal::not_expected:
      return "the peer's queue pair expects another GID, QPN or PSN, or is connected already";
    case Refusal::not_ready:
      return "the peer's queue pair did not become ready to receive in time";
    case Refusal::busy:
      return "too many connections wait at the peer";
  }
  return "refused for a reason that this version does not know";
}

bool well_formed(const Hello& hello) {
  if (hello.magic != hello_magic || hello.version != hello_version || hello.byte_order != hello_byte_order) {
    return false;
  }
  if (!well_formed(hello.locality)) return false;
  switch (hello.kind) {
    case LinkKind::reliable:
    case LinkKind::unreliable:
      return hello.source_qpn <= bits_24 && hello.destination_qpn <= bits_24 && hello.psn <= bits_24;
    case LinkKind::datagrams:
      return hello.source_qpn == 0 && hello.destination_qpn == 0 && hello.psn == 0;
  }
  return false;
}

bool well_formed(const Reply& reply) {
  return reply.magic == hello_magic && reply.refusal <= Refusal::busy && reply.shares_rings <= 1 &&
         reply.can_pull <= 1 && well_formed(reply.locality);
}

bool shared_memory_allowed() {
  const char* const value = std::getenv("GDRBENCH_SOFTVERBS_TRANSPORT");
  if (value == nullptr || std::string_view(value) == "auto") return true;
  if (std::string_view(value) == "tcp") return false;
  throw std::invalid_argument(std::string("GDRBENCH_SOFTVERBS_TRANSPORT=") + value +
                              ": expected `auto` or `tcp`");
}

}  // namespace gdrbench::softverbs
