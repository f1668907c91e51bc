#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error_text.hpp"
#include "report/text_table.hpp"
#include "report/topology_report.hpp"
#include "topology/best_pair.hpp"
#include "topology/cores.hpp"

namespace gdrbench::report {
namespace {

using namespace topology;

// What a recorded machine's files hold goes to a terminal.
std::string shown(const std::string& text, const char* otherwise = "–") {
  return text.empty() ? otherwise : printable(text);
}

std::string counted(std::size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string node_text(int node) {
  return node < 0 ? "node unknown" : fmt::format("node {}", node);
}

// "400 Gb/s", as cables are sold.
std::string line_rate(double bytes_per_second) {
  return bytes_per_second > 0 ? fmt::format("{:g} Gb/s", bytes_per_second * 8 / 1e9) : "–";
}

constexpr std::size_t indent = 2;

std::string paragraph(const std::string& lead, const std::string& text, std::size_t width) {
  return wrap(lead, words(text), {.indent = display_width(lead), .width = width});
}

std::string block(const std::string& title, const std::vector<Row>& rows, std::size_t width) {
  if (rows.empty()) return "";
  return "\n" + paragraph("", title, width) + fold_rows(rows, {.indent = indent, .width = width});
}

Row function_row(const Machine& machine, const NamedFunction& named, const std::vector<std::string>& names) {
  const PciFunction& pci = *named.pci;
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : " ") + printable(name);
  return {named.name,
          pci.address,
          pci.model.empty() ? fmt::format("PCI ID {:04x}:{:04x}", pci.vendor, pci.device) : shown(pci.model),
          shown(pci.driver, machine.has_sysfs ? "no driver" : "driver unknown"),
          node_text(pci.numa_node),
          "cores " + shown(pci.cores),
          "link " + to_string(pci.link),
          all};
}

std::vector<Row> port_rows(const std::vector<RdmaPort>& ports) {
  std::vector<Row> rows;
  rows.reserve(ports.size());
  for (const RdmaPort& port : ports)
    rows.push_back({fmt::format("{} port {}", shown(port.device), port.number), shown(port.state),
                    shown(port.link_layer), line_rate(port.bytes_per_second),
                    shown(port.netdev, "no netdev")});
  return rows;
}

std::string devices_text(const Machine& machine, const std::vector<NamedFunction>& functions,
                         std::size_t width) {
  auto named = functions.begin();
  std::vector<Row> gpus, nics, nvmes, ports, software, nodes;
  for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu)
    gpus.push_back(function_row(machine, *named++, {}));
  for (const Nic& nic : machine.nics) {
    std::vector<std::string> names = nic.rdma_devices;
    names.insert(names.end(), nic.netdevs.begin(), nic.netdevs.end());
    nics.push_back(function_row(machine, *named++, names));
    for (Row& row : port_rows(nic.ports)) ports.push_back(std::move(row));
  }
  for (const Nvme& nvme : machine.nvmes) nvmes.push_back(function_row(machine, *named++, nvme.disks));
  for (const SoftwareNic& nic : machine.software_nics)
    for (Row& row : port_rows(nic.ports)) {
      row.insert(row.begin() + 1, nic.kind);
      software.push_back(std::move(row));
    }
  for (const NumaNode& node : machine.numa_nodes)
    nodes.push_back({fmt::format("node {}", node.number),
                     node.cores.empty() ? "no cores" : "cores " + node.cores,
                     fmt::format("{:.1f} GiB", static_cast<double>(node.memory_bytes) / (1 << 30))});
  return block("GPUs", gpus, width) + block("NICs", nics, width) + block("RDMA ports", ports, width) +
         block("RDMA devices in software, with no place on the PCI buses", software, width) +
         block("NVMe devices", nvmes, width) + block("NUMA nodes", nodes, width);
}

// "pci0000:17 ▸ 17:01.0 32.0 GT/s x16 ▸ …", the CPU's side first.
std::string paths_text(const Machine& machine, const std::vector<NamedFunction>& functions,
                       std::size_t width) {
  std::string text;
  for (const auto& [name, pci] : functions) {
    if (pci->way.empty()) {
      text += fmt::format("  {}  {}\n", name, machine.has_sysfs ? "hidden" : "unknown");
      continue;
    }
    std::vector<std::string> parts = {pci->way.front()};
    for (const Hop& hop : pci->hops)
      parts.push_back(fmt::format("▸ {} {}", hop.address, to_string(hop.link)));
    text += wrap(fmt::format("  {:7}", name), parts, {.indent = 9, .width = width});
  }
  return text.empty() ? "" : "\nPCIe paths, and the link of each hop\n" + text;
}

constexpr std::pair<const char*, const char*> legend[] = {
    {"X", "the device itself"},
    {"PIX", "one PCIe switch or bridge at most"},
    {"PXB", "several bridges, but not the CPU's host bridge"},
    {"PHB", "a host bridge, which is that of both"},
    {"NODE", "host bridges of one NUMA node; to a node: the device's own"},
    {"SYS", "the link between NUMA nodes; between CPU and GPU of one superchip it is fast"},
    {"UNKNOWN", "the kernel does not tell, as in virtual machines, or a recording has no sysfs"}};

std::string matrix_text(const Machine& machine, const std::vector<NamedFunction>& functions,
                        std::size_t width) {
  if (functions.empty()) return "";
  std::vector<Row> rows(1, Row{""});
  for (const NamedFunction& named : functions) rows.front().push_back(named.name);
  for (const NumaNode& node : machine.numa_nodes) rows.front().push_back(fmt::format("node{}", node.number));
  rows.front().emplace_back("cores");
  for (const NamedFunction& from : functions) {
    Row row = {from.name};
    for (const NamedFunction& to : functions)
      row.emplace_back(
          from.pci == to.pci ? "X" : to_string(distance_between(place_of(*from.pci), place_of(*to.pci))));
    for (const NumaNode& node : machine.numa_nodes)
      row.emplace_back(to_string(distance_to_node(*from.pci, node)));
    row.push_back(shown(from.pci->cores));
    rows.push_back(std::move(row));
  }
  std::string text = "\nDistances\n" + split_columns(rows, {.indent = indent, .width = width}) + "\n";
  for (const auto& [word, meaning] : legend)
    text += paragraph(fmt::format("{:{}}{:<9}", "", indent, word), meaning, width);
  return text +
         paragraph(std::string(indent, ' '),
                   "Cores are those next to the device. Where GPUs have NVLink, they pass none of this "
                   "between them.",
                   width);
}

std::string pairs_text(const Machine& machine, std::size_t width) {
  std::vector<Row> rows;
  for (const BestPair& pair : best_pairs(machine)) {
    const Nic& nic = machine.nics[pair.nic];
    const auto least = narrowest(hops_between(machine.gpus[pair.gpu].pci.hops, nic.pci.hops));
    const RdmaPort& port = pair.port;
    rows.push_back(
        {fmt::format("GPU{}", pair.gpu),
         port.device.empty()
             ? fmt::format("NIC{} ({})", pair.nic,
                           nic.rdma_devices.empty() ? "no RDMA device" : "ports unknown")
             : fmt::format("NIC{} {} port {}{}", pair.nic, shown(port.device), port.number,
                           port.is_active() ? "" : " (" + shown(port.state, "state unknown") + ")"),
         std::string(to_string(pair.distance)),
         pair.bytes_per_second > 0 ? format_rate(pair.bytes_per_second) : "unknown",
         "cores " + shown(pair.cores),
         least ? fmt::format("narrowest link {} {}", least->address, to_string(least->link)) : ""});
  }
  if (rows.empty()) return "";
  return block("Best NIC of each GPU, what port and PCIe path carry at most, cores next to both", rows,
               width) +
         "\n" +
         paragraph(std::string(indent, ' '),
                   "A link may be slow only because nothing moves: look again under load.", width);
}

// What an empty list means, so that nobody takes it for a fault of the program.
std::string absences_text(const Machine& machine, std::size_t width) {
  std::string text;
  if (machine.gpus.empty()) text += "\n" + paragraph("", "No NVIDIA GPU is on the PCI buses.", width);
  const bool has_rdma =
      !machine.software_nics.empty() || std::any_of(machine.nics.begin(), machine.nics.end(),
                                                    [](const Nic& nic) { return !nic.rdma_devices.empty(); });
  if (!has_rdma)
    text +=
        "\n" + paragraph("",
                         machine.has_sysfs
                             ? "No RDMA device: the kernel lists none in /sys/class/infiniband. `gdrbench "
                               "doctor` says why; until then the measuring commands use softverbs, a NIC in "
                               "software."
                             : "No RDMA device is in hwloc's document. Those in software are in sysfs alone, "
                               "which this recording lacks.",
                         width);
  return text;
}

}  // namespace

std::vector<NamedFunction> named_functions(const Machine& machine) {
  std::vector<NamedFunction> all;
  const auto add = [&](const char* kind, const auto& devices) {
    for (std::size_t i = 0; i < devices.size(); ++i)
      all.push_back({fmt::format("{}{}", kind, i), &devices[i].pci});
  };
  add("GPU", machine.gpus);
  add("NIC", machine.nics);
  add("NVMe", machine.nvmes);
  return all;
}

PciDistance distance_to_node(const PciFunction& function, const NumaNode& node) {
  if (function.numa_node < 0) return PciDistance::unknown;
  return function.numa_node == node.number ? PciDistance::node : PciDistance::sys;
}

std::string topology_text(const Machine& machine, const std::string& host, std::size_t width) {
  const std::vector<NamedFunction> functions = named_functions(machine);
  std::vector<std::string> parts;
  if (!host.empty()) parts.push_back("host " + printable(host));
  for (const auto& [count, what] :
       {std::pair(machine.gpus.size(), "GPU"), std::pair(machine.nics.size(), "NIC"),
        std::pair(machine.nvmes.size(), "NVMe device"), std::pair(machine.numa_nodes.size(), "NUMA node"),
        std::pair(static_cast<std::size_t>(count_cores(machine.cores)), "core")})
    parts.push_back(counted(count, what));
  return wrap("gdrbench topology      ", parts, {.separator = " · ", .indent = 2, .width = width}) +
         devices_text(machine, functions, width) + paths_text(machine, functions, width) +
         matrix_text(machine, functions, width) + pairs_text(machine, width) + absences_text(machine, width);
}

}  // namespace gdrbench::report
