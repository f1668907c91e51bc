#include <fmt/format.h>

#include "gdrbench/case.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench {

void throw_unknown_name(std::string_view what, std::string_view value, const std::string& accepted) {
  throw UsageError(fmt::format("unknown {} '{}'; use one of: {}", what, value, accepted));
}

std::string case_name(const Case& c) {
  std::string name =
      fmt::format("{}/{}/{}/{}", to_string(c.suite), to_string(c.path), to_string(c.op), c.size_bytes);
  if (!times_messages(c.suite)) name += fmt::format("/{}", to_string(c.direction));
  if (c.load != Load::none) name += fmt::format("/{}", to_string(c.load));
  if (c.queue_pairs > 1) name += fmt::format("/qp:{}", c.queue_pairs);
  name += fmt::format("/{}", to_string(c.completion));
  if (c.pairs_at_once > 1) return name + fmt::format("/pairs:{}", c.pairs_at_once);
  return c.pair.empty() ? name : name + "/" + c.pair;
}

}  // namespace gdrbench
