#include "session/peer_json.hpp"

#include <fmt/format.h>

#include "base/fields.hpp"
#include "base/printable.hpp"
#include "gdrbench/error.hpp"
#include "session/case_json.hpp"
#include "session/frame.hpp"
#include "session/message.hpp"

namespace gdrbench::session {
namespace {

using nlohmann::json;

constexpr std::size_t longest_text = max_message_bytes;
constexpr std::uint64_t most_link_bytes_per_second = std::uint64_t{1} << 50;

template <class Read>
auto checked(const std::string& responder, Read read) {
  try {
    return read();
  } catch (const UsageError& fault) {
    throw PeerLost(fmt::format("{}: broke the protocol: {}", responder, fault.what()));
  }
}

void make_printable(json& value) {
  if (value.is_string()) value = printable(value.get_ref<const std::string&>());
  if (value.is_structured())
    for (json& member : value) make_printable(member);
}

void check_device(const Fields& device) {
  for (const char* key : {"name", "link_layer", "unusable"}) device.text(key, longest_text);
  device.name<FabricKind>("fabric");
  device.number("active_mtu", 0, 65'536);
  device.real("link_bytes_per_second", 0, static_cast<double>(most_link_bytes_per_second));
}

// Only what choosing paths and devices relies on; the rest goes into the result as it is.
void check_description(const Fields& end) {
  end.text("host", longest_text);
  end.inner("gpu").text("unavailable", longest_text);
  const Fields rdma = end.inner("rdma");
  rdma.text("unavailable", longest_text);
  const json& devices = rdma.at("devices");
  if (!devices.is_array()) throw UsageError("end.rdma.devices: not an array");
  for (std::size_t i = 0; i < devices.size(); ++i)
    check_device(Fields(devices[i], fmt::format("end.rdma.devices[{}]", i)));
}

void check_count(const char* name, std::uint64_t found, std::uint64_t due) {
  if (found != due)
    throw UsageError(fmt::format("result.{}: {} messages, but the run had {}", name, found, due));
}

// The target of plain one-sided operations does not see their messages.
void check_counts(const Case& c, const RunRequest& request, const EndResult& result) {
  const bool seen = is_staged(c.path) || c.op == Op::send || c.op == Op::write_imm;
  if (!seen || times_messages(c.suite)) return;
  if (c.direction != Direction::reverse)
    check_count("messages_received", result.messages_received, request.iterations);
  if (c.direction != Direction::forward)
    check_count("messages_sent", result.messages_sent, request.iterations);
}

}  // namespace

json peer_description(const json& welcome, const std::string& responder) {
  return checked(responder, [&] {
    json end = Fields(welcome, "welcome").at("end");
    check_description(Fields(end, "end"));
    make_printable(end);
    return end;
  });
}

json object_of(const json& message, const char* key, const std::string& responder) {
  return checked(responder, [&] {
    const Fields fields(message, type_of(message));
    fields.inner(key);
    return fields.at(key);
  });
}

std::string verdict_of(const json& done, const std::string& responder) {
  return checked(responder, [&] {
    Fields(done, "done").text("fault", longest_text);
    return text_of(done, "fault");
  });
}

EndResult result_of(const json& done, const Case& c, const RunRequest& request,
                    const std::string& responder) {
  return checked(responder, [&] {
    EndResult result = end_result_from_json(Fields(done, "done").at("result"));
    check_counts(c, request, result);
    return result;
  });
}

}  // namespace gdrbench::session
