#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>

#include "cli/commands.hpp"
#include "cli/common_flags.hpp"
#include "cli/output.hpp"
#include "cli/picture.hpp"
#include "cli/results.hpp"
#include "cli/terminal_width.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/report.hpp"
#include "report/topology_report.hpp"
#include "topology/hwloc_view.hpp"
#include "topology/machine.hpp"
#include "topology/root.hpp"
#include "verbs/device.hpp"

namespace gdrbench::cli {
namespace {

struct TopologyFlags {
  bool json = false;
  std::string xml, picture, snapshot;
};

topology::Root root_of(const TopologyFlags& flags) {
  if (flags.snapshot.empty()) return topology::Root();
  return topology::open_recording(flags.snapshot, fmt::format("--snapshot '{}'", flags.snapshot));
}

// Devices that a library brings are in no file.
void add_softverbs(topology::Machine& machine) {
  try {
    for (const verbs::DeviceInfo& device : verbs::list_devices())
      if (device.fabric == FabricKind::softverbs)
        machine.software_nics.push_back(
            {.name = device.name,
             .kind = std::string(to_string(device.fabric)),
             .ports = {{.device = device.name,
                        .number = device.port,
                        .state = device.unusable.empty() ? "ACTIVE" : "DOWN",
                        .link_layer = device.link_layer,
                        .bytes_per_second = static_cast<double>(device.link_bytes_per_second),
                        .netdev = ""}}});
  } catch (const std::exception&) {  // what libibverbs lacks is the doctor's to say
  }
}

int show_topology(const TopologyFlags& flags) {
  const topology::Root root = root_of(flags);
  check_distinct({flags.xml, flags.picture});
  if (!flags.xml.empty()) gdrbench::check_writable(flags.xml);
  if (!flags.picture.empty()) check_picture(flags.picture);
  topology::Machine machine = topology::read_machine(root);
  if (root.is_this_machine()) add_softverbs(machine);
  if (machine.numa_nodes.empty() && !root.is_this_machine())
    throw UsageError(
        fmt::format("--snapshot '{}': hwloc can read neither topology.xml nor sys in it", flags.snapshot));
  const std::string host = root.read("proc/sys/kernel/hostname", 256).text;

  std::exception_ptr failure;
  const auto attempt = [&](const auto& act) {
    try {
      act();
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  };
  if (!flags.xml.empty() || !flags.picture.empty()) {
    const std::string xml = topology::hwloc_xml(root);
    if (xml.empty()) throw Error("hwloc finds no topology here, so there is nothing to export");
    if (!flags.xml.empty()) attempt([&] { write_file_atomically(flags.xml, xml); });
    if (!flags.picture.empty()) attempt([&] { draw_picture(xml, flags.picture); });
  }
  attempt([&] {
    // Names in a recorded machine's files need not be UTF-8.
    using Json = nlohmann::ordered_json;
    const std::string text =
        flags.json
            ? report::topology_json(machine, host).dump(2, ' ', false, Json::error_handler_t::replace) + '\n'
            : report::topology_text(machine, host, terminal_width());
    print_out(text, "the topology");
  });
  if (failure) std::rethrow_exception(failure);
  return static_cast<int>(ExitStatus::done);
}

}  // namespace

void add_topology(CLI::App& app, Action& chosen, const Invocation& invocation) {
  auto flags = std::make_shared<TopologyFlags>();
  CLI::App* command = app.add_subcommand(
      "topology", "GPUs, NICs, NVMe devices, what lies between them, and the best NIC of each GPU");
  command->add_flag("--json", flags->json, "JSON on standard output (docs/topology.schema.json)");
  add_file_flag(*command, "--xml", flags->xml, "Write hwloc's XML document, which lstopo and hwloc-* read");
  add_file_flag(*command, "--picture", flags->picture,
                "Have lstopo draw a picture; the name ends in .svg, .png, .pdf or .txt");
  command->add_option("--snapshot", flags->snapshot, "Show the machine recorded in this folder")
      ->type_name("FOLDER");
  command->footer(
      "Exit status: 0 done, 1 writing a file or drawing failed, 2 bad usage, or a place that cannot be "
      "written to,\n3 lstopo is missing or cannot write that format.");
  command->callback([=, &chosen, &invocation] {
    refuse_benchmark_flags(invocation);
    chosen = [=] { return show_topology(*flags); };
  });
}

}  // namespace gdrbench::cli
