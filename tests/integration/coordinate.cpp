#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <string>
#include <vector>

#include "gdrbench/error.hpp"
#include "gdrbench/interrupt.hpp"
#include "gdrbench/session.hpp"

// A client that is no rank itself: has the servers at two ports of this machine measure between themselves.
// Arguments: two ports, then NAME=VALUE of suite, path, op, direction, size, iterations, and pairs: so many
// cases at the same time, each in sessions of its own. Prints a line for each run.
namespace {

using namespace gdrbench;

struct Plan {
  Case c;
  RunRequest request{.iterations = 100, .warmup = 10, .seed = 1};
  int pairs = 1;
};

template <class E>
void set_if_named(E& field, const std::string& name, const std::string& text) {
  if (name == EnumNames<E>::what) field = from_name<E>(text);
}

void set(Plan& plan, const std::string& argument) {
  const auto equals = argument.find('=');
  const std::string name = argument.substr(0, equals), text = argument.substr(equals + 1);
  set_if_named(plan.c.suite, name, text);
  set_if_named(plan.c.path, name, text);
  set_if_named(plan.c.op, name, text);
  set_if_named(plan.c.direction, name, text);
  set_if_named(plan.c.completion, name, text);
  if (name == "size") plan.c.size_bytes = std::stoull(text);
  if (name == "iterations") plan.request.iterations = std::stoull(text);
  if (name == "pairs") plan.pairs = std::stoi(text);
}

ConnectOptions server_at(const char* port) {
  ConnectOptions options;
  options.port = static_cast<std::uint16_t>(std::stoi(port));
  if (const char* key = std::getenv("GDRBENCH_KEY")) options.key = key;
  return options;
}

struct Pair {
  Session first, second;
};

RunResult measure(Pair& pair, const Plan& plan) {
  const auto open = open_case({{&pair.first, plan.c}, {&pair.second, plan.c}});
  std::puts(("opened " + case_name(plan.c)).c_str());
  std::fflush(stdout);
  open->run(plan.request);
  return open->run(plan.request);
}

void print(const RunResult& run) {
  std::printf("verified %d iterations %llu bytes %llu", run.verified,
              static_cast<unsigned long long>(run.iterations),
              static_cast<unsigned long long>(run.payload_bytes));
  for (const RankResult& rank : run.ranks)
    std::printf(" | elapsed %g sent %llu received %llu cpu %g p50 %g", rank.elapsed_s,
                static_cast<unsigned long long>(rank.messages_sent),
                static_cast<unsigned long long>(rank.messages_received), rank.cpu.elapsed_s,
                rank.latency_us ? rank.latency_us->p50 : 0.0);
  std::puts("");
}

}  // namespace

int main(int count, char** arguments) try {
  handle_termination_signals();
  Plan plan;
  for (int i = 3; i < count; ++i) set(plan, arguments[i]);
  std::vector<Pair> pairs;
  pairs.push_back({Session(server_at(arguments[1])), Session(server_at(arguments[2]))});
  while (pairs.size() < static_cast<std::size_t>(plan.pairs))
    pairs.push_back({pairs.front().first.join(), pairs.front().second.join()});
  std::vector<std::future<RunResult>> runs;
  for (Pair& pair : pairs)
    runs.push_back(std::async(std::launch::async, [&] { return measure(pair, plan); }));
  for (auto& run : runs) print(run.get());
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.status());
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
