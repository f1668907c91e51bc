#include "session/remote_json.hpp"

#include <fmt/format.h>

#include "base/error_text.hpp"
#include "base/fields.hpp"
#include "base/records.hpp"
#include "gdrbench/error.hpp"
#include "session/frame.hpp"
#include "session/message.hpp"

namespace gdrbench::session {
namespace {

using nlohmann::json;

constexpr std::size_t max_verdict_bytes = max_message_bytes;

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

void check_count(const char* name, std::uint64_t found, std::uint64_t due) {
  if (found != due)
    throw UsageError(fmt::format("result.{}: {} messages, but the run had {}", name, found, due));
}

// The target of plain one-sided operations does not see their messages.
void check_counts(const Case& c, const RunRequest& request, const RankResult& result) {
  const bool seen = is_staged(c.path) || c.op == Op::send || c.op == Op::write_imm;
  if (!seen || times_messages(c.suite)) return;
  if (c.direction != Direction::reverse)
    check_count("messages_received", result.messages_received, request.iterations);
  if (c.direction != Direction::forward)
    check_count("messages_sent", result.messages_sent, request.iterations);
}

template <class T>
T printable_member(const json& message, const char* key, T (*read)(const json&)) {
  json member = Fields(message, type_of(message)).at(key);
  make_printable(member);
  return read(member);
}

}  // namespace

EndInfo remote_description(const json& welcome, const std::string& responder) {
  return checked(responder, [&] { return printable_member(welcome, "end", end_info_from_json); });
}

json object_of(const json& message, const char* key, const std::string& responder) {
  return checked(responder, [&] {
    const Fields fields(message, type_of(message));
    fields.inner(key);
    return fields.at(key);
  });
}

PathProof proof_of(const json& message, const std::string& responder) {
  return checked(responder, [&] { return printable_member(message, "describe", path_proof_from_json); });
}

std::string verdict_of(const json& done, const std::string& responder) {
  return checked(responder, [&] {
    Fields(done, "done").text("fault", max_verdict_bytes);
    return text_of(done, "fault");
  });
}

RankResult result_of(const json& done, const Case& c, const RunRequest& request,
                     const std::string& responder) {
  return checked(responder, [&] {
    RankResult result = rank_result_from_json(Fields(done, "done").at("result"));
    check_counts(c, request, result);
    return result;
  });
}

}  // namespace gdrbench::session
