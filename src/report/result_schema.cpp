#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "report/result_fields.hpp"

namespace gdrbench {
namespace {

using namespace report;
using Schema = nlohmann::ordered_json;

/// A rule that no list of fields can tell; `place` is a path of members, "*" the elements of an array.
struct Rule {
  std::string_view place;
  Schema keywords;
};

Schema& at_place(Schema& schema, std::string_view place) {
  if (place.empty()) return schema;
  const std::string_view step = place.substr(0, place.find('/'));
  const std::string_view rest = step.size() == place.size() ? "" : place.substr(step.size() + 1);
  return at_place(step == "*" ? schema.at("items") : schema.at("properties").at(std::string(step)), rest);
}

Schema constant(std::string_view value) {
  return {{"const", value}};
}

template <class E, class Accept>
Schema one_of(Accept accept) {
  Schema names = Schema::array();
  for (const auto& [value, name] : EnumNames<E>::names)
    if (accept(value)) names.push_back(name);
  return {{"enum", std::move(names)}};
}

template <class Range>
Schema names_of(const Range& values) {
  Schema names = Schema::array();
  for (const auto value : values) names.push_back(to_string(value));
  return names;
}

Schema of_type(const char* type) {
  return {{"type", type}};
}

/// Of an object: where the members are as `given`, the others are as `then`.
Schema when(Schema given, Schema then) {
  return {{"if", {{"properties", std::move(given)}}}, {"then", {{"properties", std::move(then)}}}};
}

Schema when_else(Schema given, Schema then, Schema otherwise) {
  Schema rule = when(std::move(given), std::move(then));
  rule["else"] = {{"properties", std::move(otherwise)}};
  return rule;
}

Schema each_with(Schema members) {
  return {{"items", {{"properties", std::move(members)}}}};
}

bool is_of_gpu_memory(Registration registration) {
  return registration == Registration::peermem || registration == Registration::dmabuf;
}

bool is_of_wire(Registration registration, WireKind wire) {
  switch (wire) {
    case WireKind::tcp:
      return registration == Registration::none;
    case WireKind::verbs:
      return registration == Registration::host || is_of_gpu_memory(registration);
    case WireKind::ipc:
      return registration == Registration::ipc;
  }
  return false;
}

template <class Spec>
void add_common(Schema& then, const Spec& row) {
  if (row.ops != all_ops) then["op"] = one_of<Op>([&](Op op) { return contains(row.ops, op); });
  if (!row.has_events) then["completion"] = constant(to_string(CompletionMode::poll));
}

Schema suite_rule(const SuiteSpec& suite) {
  const bool message = suite.timing == Timing::message;
  Schema then = {{"repetitions", each_with({{"latency_us", of_type(message ? "object" : "null")},
                                            {"bytes_per_second", of_type(message ? "null" : "number")},
                                            {"cpu", {{"minItems", suite.roles.size()}}}})}};
  if (message) then["depth"] = {{"const", 1}};
  if (!suite.has_load) then["load"] = constant(to_string(Load::none));
  add_common(then, suite);
  return when({{"suite", constant(suite.name)}}, std::move(then));
}

Schema path_rule(const PathSpec& path) {
  Schema proof = {
      {"items",
       {{"required", Schema::array({to_string(path.wire)})},
        {"properties", {{"policy", {{"properties", {{"policy", constant(to_string(path.policy))}}}}}}}}}};
  Schema then = {
      {"registration", one_of<Registration>([&](Registration r) { return is_of_wire(r, path.wire); })},
      {"proof", std::move(proof)}};
  if (path.baseline) then["memory"] = constant(to_string(MemoryKind::host));
  if (path.needs_cuda) then["memory"] = constant(to_string(MemoryKind::cuda));
  if (path.policy == Policy::direct) then["repetitions"] = each_with({{"stages", of_type("null")}});
  add_common(then, path);
  return when({{"path", constant(path.name)}}, std::move(then));
}

Schema case_rules() {
  Schema rules = Schema::array();
  for (const SuiteSpec& suite : all_suites) rules.push_back(suite_rule(suite));
  for (const PathSpec& path : all_paths) rules.push_back(path_rule(path));
  const Schema host = constant(to_string(MemoryKind::host));
  rules.push_back(
      when({{"memory", host}},
           {{"registration", one_of<Registration>([](Registration r) { return !is_of_gpu_memory(r); })}}));
  for (const PathSpec& path : all_paths)
    if (path.wire == WireKind::verbs && path.policy == Policy::direct && !path.baseline)
      rules.push_back(when({{"path", constant(path.name)}, {"memory", {{"not", host}}}},
                           {{"registration", one_of<Registration>(is_of_gpu_memory)}}));
  rules.push_back(when_else({{"load", constant(to_string(Load::none))}},
                            {{"repetitions", each_with({{"load", of_type("null")}})}},
                            {{"repetitions", each_with({{"load", of_type("array")}})}}));
  return rules;
}

Schema metric_rules() {
  Schema rules = Schema::array();
  for (const SuiteSpec& suite : all_suites)
    rules.push_back(
        when({{"suite", constant(suite.name)}}, {{"metric", {{"enum", names_of(suite.metrics)}}}}));
  return rules;
}

Schema reference_rules() {
  Schema rules = Schema::array();
  for (const PathSpec& path : all_paths)
    rules.push_back(path.compared_with.empty()
                        ? Schema{{"properties", {{"path", {{"not", constant(path.name)}}}}}}
                        : when({{"path", constant(path.name)}},
                               {{"reference", {{"enum", names_of(path.compared_with)}}}}));
  return rules;
}

std::vector<Rule> rules() {
  const Schema not_empty = {{"minLength", 1}}, positive = {{"exclusiveMinimum", 0}};
  const std::string number_list = "[0-9]+(-[0-9]+)?";
  Schema crossover_rules = metric_rules();
  for (Schema& rule : reference_rules()) crossover_rules.push_back(std::move(rule));
  return {
      {"schema", {{"const", result_schema_number}}},
      {"version", {{"pattern", "^[0-9]+\\.[0-9]+\\.[0-9]+"}}},
      {"commit", not_empty},
      {"command", not_empty},
      {"incomplete_reason", not_empty},
      {"fabric/link_bytes_per_second", positive},
      {"skipped/*/reason", not_empty},
      {"load_skipped/*/reason", not_empty},
      {"local/*/suite", not_empty},
      {"local/*/what", not_empty},
      {"local/*/repetitions", {{"minItems", 1}}},
      {"local_skipped/*/reason", not_empty},
      {"cases/*", {{"allOf", case_rules()}}},
      {"cases/*/repetitions/*/started",
       {{"pattern",
         "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$"}}},
      {"cases/*/proof/*/binding/cores", {{"pattern", fmt::format("^({0}(,{0})*)?$", number_list)}}},
      {"cases/*/proof/*/binding/why", {{"pattern", "^$|^(next to|not bound:) ."}}},
      {"cases/*/proof/*/observer/kind", {{"enum", {"cpu", "gpu kernel"}}}},
      {"cases/*/proof/*/gpu_writes",
       when_else({{"flush_us", of_type("null")}}, {{"no_flush_reason", of_type("string")}},
                 {{"no_flush_reason", of_type("null")}})},
      {"cases/*/proof/*/gpu_writes/writes_ordering", {{"enum", {"none", "owner", "all_devices"}}}},
      {"cases/*/proof/*/gpu_writes/no_flush_reason", not_empty},
      {"comparison/points/*", {{"allOf", metric_rules()}}},
      {"comparison/points/*/ratios", {{"minItems", 1}}},
      {"comparison/points/*/ratios/*", {{"allOf", reference_rules()}}},
      {"comparison/points/*/ratios/*/estimate", positive},
      {"comparison/crossovers/*", {{"allOf", std::move(crossover_rules)}}},
      {"", when_else({{"complete", {{"const", true}}}}, {{"incomplete_reason", of_type("null")}},
                     {{"incomplete_reason", of_type("string")}})},
  };
}

Schema own_schema() {
  Schema own = schema_of<FileRecord>();
  const Schema optional = schema_of<OptionalRecord>();
  own["properties"].update(optional.at("properties"));
  for (Rule& rule : rules()) at_place(own, rule.place).update(rule.keywords);
  return own;
}

// ---- what is known of paths, suites, metrics and fabrics ----

Schema paths_table() {
  Schema table = Schema::array();
  for (const PathSpec& path : all_paths)
    table.push_back({{"name", path.name},
                     {"help", path.help},
                     {"wire", to_string(path.wire)},
                     {"policy", to_string(path.policy)},
                     {"baseline", path.baseline},
                     {"needs_cuda", path.needs_cuda},
                     {"compared_with", names_of(path.compared_with)}});
  return table;
}

Schema suites_table() {
  Schema table = Schema::array();
  for (const SuiteSpec& suite : all_suites)
    table.push_back({{"name", suite.name},
                     {"help", suite.help},
                     {"sample", suite.sample},
                     {"timing", suite.timing == Timing::message ? "message" : "stream"},
                     {"arrival", suite.arrival == ArrivalBy::completion ? "completion" : "memory"},
                     {"has_load", suite.has_load},
                     {"roles", suite.roles},
                     {"metrics", names_of(suite.metrics)}});
  return table;
}

Schema metrics_table() {
  Schema table = Schema::array();
  for (const MetricSpec& metric : all_metrics)
    table.push_back({{"name", metric.name},
                     {"heading", metric.heading},
                     {"unit", metric.unit},
                     {"larger_is_better", metric.larger_is_better},
                     {"sum_of", places_of(metric.metric)}});
  return table;
}

Schema fabrics_table() {
  Schema table = Schema::array();
  for (const auto& [kind, name] : EnumNames<FabricKind>::names)
    table.push_back({{"name", name}, {"functional", is_functional(kind)}});
  return table;
}

Schema tables() {
  Schema series = Schema::array();
  for_each_field<SeriesRecord>([&](const auto& field) { series.push_back(field.name); });
  return {{"description",
           "Paths, suites, metrics and fabrics that the program knows. A metric is the sum of the figures at "
           "sum_of in a repetition, where * stands for every rank. Compared cases agree in the fields of "
           "series."},
          {"paths", paths_table()},
          {"suites", suites_table()},
          {"metrics", metrics_table()},
          {"fabrics", fabrics_table()},
          {"series", std::move(series)}};
}

// ---- text ----

// As JSON, with what fits a line on one.
std::string folded(const Schema& value, std::size_t indent, std::size_t used) {
  constexpr std::size_t width = 118;
  std::string line = value.dump();
  if (!value.is_structured() || value.empty() || indent + used + line.size() <= width) return line;
  const std::string margin(indent + 2, ' ');
  std::string text(1, value.is_object() ? '{' : '[');
  for (auto member = value.begin(); member != value.end(); ++member) {
    const std::string key = value.is_object() ? Schema(member.key()).dump() + ": " : "";
    text.append(member == value.begin() ? "\n" : ",\n").append(margin).append(key);
    text += folded(*member, indent + 2, key.size() + 1);
  }
  return text + '\n' + std::string(indent, ' ') + (value.is_object() ? '}' : ']');
}

}  // namespace

std::string result_schema() {
  const Schema benchmark = {
      {"type", "object"}, {"required", {"name"}}, {"properties", {{"name", of_type("string")}}}};
  const Schema schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                         {"title", fmt::format("gdrbench result file, schema {}", result_schema_number)},
                         {"description",
                          "Printed by `gdrbench schema`; docs/json.md explains each field. Our own object is "
                          "closed; context and "
                          "benchmarks are Google Benchmark's."},
                         {"type", "object"},
                         {"required", {"context", "benchmarks", "gdrbench"}},
                         {"properties",
                          {{"context", of_type("object")},
                           {"benchmarks", {{"type", "array"}, {"items", benchmark}}},
                           {"gdrbench", own_schema()}}},
                         {"x-gdrbench", tables()}};
  return folded(schema, 0, 0) + '\n';
}

}  // namespace gdrbench
