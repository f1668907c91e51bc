#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <new>
#include <thread>

#include "stress_side.hpp"

/// Many queue pairs, all operations at random, in both directions, every byte checked: between two threads of
/// one process, and between two processes.
namespace gdrbench::softverbs {
namespace {

struct Unmap {
  void operator()(Shared* shared) const { munmap(shared, sizeof(Shared)); }
};

std::unique_ptr<Shared, Unmap> make_shared_memory() {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("map shared memory", errno);
  return std::unique_ptr<Shared, Unmap>{new (memory) Shared};
}

std::array<int, 2> make_sockets() {
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0)
    fail("make a socket pair", errno);
  return sockets;
}

bool run_threads(const Settings& settings, Shared& shared) {
  const auto sockets = make_sockets();
  bool left = false, right = false;
  {
    const std::jthread other([&] { right = run_side(1, settings, shared, sockets[1]); });
    left = run_side(0, settings, shared, sockets[0]);
  }
  return left && right;
}

pid_t start_process(std::uint32_t side, const Settings& settings, Shared& shared,
                    const std::array<int, 2>& sockets) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) fail("fork", errno);
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  close(sockets[1 - side]);
  std::exit(run_side(side, settings, shared, sockets[side]) ? 0 : 1);
}

bool run_processes(const Settings& settings, Shared& shared) {
  const auto sockets = make_sockets();
  for (const std::uint32_t side : {0U, 1U}) start_process(side, settings, shared, sockets);
  for (const int socket : sockets) close(socket);
  bool good = true;
  for (int i = 0; i < 2; ++i) {
    int status = 0;
    if (wait(&status) < 0) fail("wait for a side", errno);
    if (WIFSIGNALED(status))
      fmt::print(stderr, "softverbs_stress: one side was ended by signal {}\n", WTERMSIG(status));
    if (status == 0) continue;
    good = false;
    shared.failed = true;
  }
  return good;
}

void print_totals(const Totals& totals) {
  fmt::print("  {:<10} {:>12} {:>18}\n", "op", "messages", "bytes");
  std::uint64_t messages = 0, bytes = 0;
  for (std::size_t i = 0; i < kind_names.size(); ++i) {
    fmt::print("  {:<10} {:>12} {:>18}\n", kind_names[i], totals.messages[i].load(), totals.bytes[i].load());
    messages += totals.messages[i];
    bytes += totals.bytes[i];
  }
  fmt::print("  {:<10} {:>12} {:>18}\n", "all", messages, bytes);
  std::fflush(stdout);
}

bool run(const char* between, Settings settings, std::uint32_t pollers,
         bool (*run_sides)(const Settings&, Shared&)) {
  settings.pollers = std::min(pollers, settings.pairs);
  fmt::print("{} queue pair pairs between two {}, {} s, seed {}\n", settings.pairs, between,
             settings.duration.count(), settings.seed);
  std::fflush(stdout);
  const auto shared = make_shared_memory();
  const bool good = run_sides(settings, *shared);
  print_totals(shared->totals);
  fmt::print("  {}\n", good ? "no fault" : "FAILED");
  std::fflush(stdout);
  return good;
}

}  // namespace
}  // namespace gdrbench::softverbs

int main(int argc, char** argv) {
  using namespace gdrbench::softverbs;
  Settings settings;
  std::string mode = "both";
  std::int64_t seconds = 120;
  CLI::App app{
      "Checks every byte of random traffic over many RC queue pairs. Exit status: 0 no fault, 1 a fault."};
  app.add_option("--device", settings.device, "RDMA device ($RDMA_DEVICE, else the first)");
  app.add_option("--pairs", settings.pairs, "connected pairs of queue pairs")
      ->check(CLI::Range(1U, Shared::max_pairs))
      ->capture_default_str();
  app.add_option("--seconds", seconds, "duration of each mode")
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  app.add_option("--seed", settings.seed, "seed of the random numbers")->capture_default_str();
  app.add_option("--mode", mode, "what lies between the ends")
      ->check(CLI::IsMember({"threads", "processes", "both"}))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  settings.duration = std::chrono::seconds{seconds};
  try {
    // Two threads poll in every process. The fork comes before any device is opened.
    const bool processes = mode == "threads" || run("processes", settings, 2, run_processes);
    const bool threads = mode == "processes" || run("threads", settings, 1, run_threads);
    return processes && threads ? 0 : 1;
  } catch (const std::exception& fault) {
    fmt::print(stderr, "softverbs_stress: {}\n", fault.what());
    return 1;
  }
}
