#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "cli/commands.hpp"
#include "cli/common_flags.hpp"
#include "cli/doctor_facts.hpp"
#include "cli/fabric.hpp"
#include "cli/output.hpp"
#include "gdrbench/case.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/session.hpp"
#include "gdrbench/size.hpp"

namespace gdrbench::cli {
namespace {

struct ServeFlags {
  std::string bind = "127.0.0.1";
  std::uint16_t port = default_port;
  std::string key_file;
  bool no_key = false;
  std::optional<std::string> max_memory;
  std::uint32_t max_queue_pairs = 1024;
  std::string fabric = "auto";
};

std::string host_for_clients(const std::string& bind) {
  if (bind != "0.0.0.0" && bind != "::") return bind;
  char name[256] = "HOST";
  gethostname(name, sizeof name - 1);
  return name;
}

// How clients reach this server, and who may.
std::string greeting(const ServeFlags& flags, const std::string& key, bool fresh_key, std::uint16_t port,
                     const std::string& devices) {
  const bool local = is_loopback(flags.bind);
  const std::string lead = fresh_key ? fmt::format("GDRBENCH_KEY={} ", key) : "";
  const std::string at = port == default_port ? "" : fmt::format(" --port {}", port);
  const std::string file = fresh_key || key.empty() ? "" : " --key-file FILE";
  std::string text = fmt::format(
      "gdrbench serve: listening on {}, port {}. {}:\n\n  {}gdrbench compare {}{}{}\n\nThis end has {}.\n",
      flags.bind, port, local ? "From this machine" : "On the other node", lead, host_for_clients(flags.bind),
      at, file, devices);
  if (local)
    text += "Only this machine can connect; name an address by --bind for other nodes.\n";
  else if (key.empty())
    text +=
        "No key is asked for (--no-key): whoever reaches this port can use this machine's memory and "
        "network.\n";
  return text;
}

int serve(const ServeFlags& flags, const Invocation& invocation) {
  // With --bind, the other commands choose cores.
  for (const auto& [by, word] : EnumNames<BindBy>::names)
    if (flags.bind == word)
      throw UsageError(fmt::format(
          "serve --bind {}: --bind of serve is the address to listen on, and the client chooses the "
          "cores of both ends (gdrbench compare HOST --bind {}); give an address of this node, or 0.0.0.0 "
          "for all of them",
          word, word));
  ServeOptions options;
  options.bind = flags.bind;
  options.port = flags.port;
  options.max_queue_pairs = flags.max_queue_pairs;
  if (flags.max_memory) options.max_payload_bytes = parse_size(*flags.max_memory);
  options.key = flags.no_key ? "" : read_key(flags.key_file);
  const FabricRequest request{.fabric = read_fabric(flags.fabric), .devices = {}};
  const std::string no_softverbs = provide_fabric(request, invocation.argv);
  bool fresh_key = false;
  if (options.key.empty() && !flags.no_key && !is_loopback(flags.bind)) {
    options.key = make_key();
    fresh_key = true;
  }
  options.examine = [fabric = flags.fabric](const nlohmann::json& asked) {
    return examine_this_machine(fabric, asked);
  };
  // A log that can no longer be written must not end the service.
  options.log = [](const std::string& line) {
    std::fputs(fmt::format("{:%H:%M:%S} {}\n", fmt::localtime(std::time(nullptr)), line).c_str(), stdout);
    std::fflush(stdout);
  };
  Server server(options);
  print_out(greeting(flags, options.key, fresh_key, server.port(), offered_devices(no_softverbs)));
  server.run();
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, Action& chosen, const Invocation& invocation) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app.add_subcommand("serve", "Answer on this node, one client after another");
  command
      ->add_option("--bind", flags->bind,
                   "Address to listen on; on any but a loopback address clients need a key, unless --no-key "
                   "(the client's --bind, of cores, holds for both ends)")
      ->capture_default_str();
  command->add_option("--port", flags->port, "TCP port; 0 takes a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  add_file_flag(
      *command, "--key-file", flags->key_file,
      "File with the key (else GDRBENCH_KEY; else none on a loopback address, a fresh one elsewhere)");
  command->add_flag("--no-key", flags->no_key, "Let anyone who reaches the port use this server");
  command->add_option("--max-memory", flags->max_memory,
                      "Payload memory that a client may ask for (default: half of what is available)");
  command->add_option("--max-queue-pairs", flags->max_queue_pairs, "Queue pairs that a client may ask for")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--fabric", flags->fabric, fabric_help)->capture_default_str();
  command->footer(
      "Exit status: 0 ended by SIGINT or SIGTERM, 1 the address cannot be listened on, 2 bad usage, 3 "
      "softverbs "
      "was\nasked for and cannot be loaded.");
  command->callback([=, &chosen, &invocation] {
    refuse_benchmark_flags(invocation);
    chosen = [=] { return serve(*flags, invocation); };
  });
}

}  // namespace gdrbench::cli
