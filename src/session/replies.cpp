#include "session/replies.hpp"

#include <fmt/format.h>

#include "base/error_text.hpp"
#include "base/fields.hpp"
#include "base/records.hpp"
#include "gdrbench/error.hpp"
#include "session/channel.hpp"

namespace gdrbench::session {
namespace {

using nlohmann::json;

constexpr std::size_t max_verdict_bytes = max_message_bytes;
constexpr std::size_t max_token_bytes = 64;

template <class Read>
auto checked(const std::string& who, Read read) {
  try {
    return read();
  } catch (const UsageError& fault) {
    throw PeerLost(fmt::format("{}: protocol violation: {}", who, fault.what()));
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

// Of suites of two ranks. The target of plain one-sided operations does not see their messages.
void check_counts(const Case& c, const RunRequest& request, std::size_t rank, const RankResult& result) {
  const bool seen = is_staged(c.path) || c.op == Op::send || c.op == Op::write_imm;
  if (!seen || times_messages(c.suite) || rank > 1) return;
  if (c.direction != (rank == 0 ? Direction::forward : Direction::reverse))
    check_count("messages_received", result.messages_received + result.messages_lost, request.iterations);
  if (c.direction != (rank == 0 ? Direction::reverse : Direction::forward))
    check_count("messages_sent", result.messages_sent, request.iterations);
}

template <class T>
T printable_member(const json& message, const char* key, T (*read)(const json&)) {
  json member = Fields(message, type_of(message)).at(key);
  make_printable(member);
  return read(member);
}

}  // namespace

EndInfo remote_description(const json& welcome, const std::string& who) {
  return checked(who, [&] { return printable_member(welcome, "end", end_info_from_json); });
}

json object_of(const json& message, const char* key, const std::string& who) {
  return checked(who, [&] {
    const Fields fields(message, type_of(message));
    fields.inner(key);
    return fields.at(key);
  });
}

std::string token_of(const json& opened, std::size_t rank, const std::string& who) {
  return checked(who, [&] {
    const Fields fields(opened, "opened");
    const json& tokens = fields.at("tokens");
    if (!tokens.is_array() || rank >= tokens.size())
      refuse_value(fields.name_of("tokens"), fmt::format("none for rank {}", rank));
    return read_text(tokens[rank], fields.name_of("tokens"), max_token_bytes);
  });
}

PathProof proof_of(const json& message, const std::string& who) {
  return checked(who, [&] { return printable_member(message, "describe", path_proof_from_json); });
}

std::string verdict_of(const json& done, const std::string& who) {
  return checked(who, [&] {
    Fields(done, "done").text("fault", max_verdict_bytes);
    return text_of(done, "fault");
  });
}

RankResult result_of(const json& done, const Case& c, const RunRequest& request, std::size_t rank,
                     const std::string& who) {
  return checked(who, [&] {
    RankResult result = rank_result_from_json(Fields(done, "done").at("result"));
    check_counts(c, request, rank, result);
    return result;
  });
}

}  // namespace gdrbench::session
