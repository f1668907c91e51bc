#include <fmt/format.h>

#include "gdrbench/version.hpp"
#include "report/topology_report.hpp"
#include "topology/best_pair.hpp"

namespace gdrbench::report {
namespace {

using Json = nlohmann::ordered_json;
using namespace topology;

constexpr int schema = 1;

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

template <class Number>
Json known(Number number) {
  return number > 0 ? Json(number) : Json(nullptr);
}

Json link_json(const PcieLink& link) {
  return {{"transfers_per_second", known(link.transfers_per_second)},
          {"lanes", known(link.lanes)},
          {"bytes_per_second", known(bytes_per_second(link))},
          {"most_transfers_per_second", known(link.max_transfers_per_second)},
          {"most_lanes", known(link.max_lanes)},
          {"most_bytes_per_second", known(max_bytes_per_second(link))}};
}

Json hop_json(const Hop& hop) {
  return {{"address", hop.address}, {"link", link_json(hop.link)}};
}

Json function_json(const NamedFunction& named) {
  const PciFunction& pci = *named.pci;
  Json hops = Json::array();
  for (const Hop& hop : pci.hops) hops.push_back(hop_json(hop));
  return {{"name", named.name},
          {"address", pci.address},
          {"class", fmt::format("{:#08x}", pci.class_code)},
          {"vendor", fmt::format("{:#06x}", pci.vendor)},
          {"device", fmt::format("{:#06x}", pci.device)},
          {"model", or_null(pci.model)},
          {"driver", or_null(pci.driver)},
          {"numa_node", pci.numa_node < 0 ? Json(nullptr) : Json(pci.numa_node)},
          {"cores", pci.cores},
          {"way", pci.way},
          {"hops", hops}};
}

Json ports_json(const std::vector<RdmaPort>& ports) {
  Json all = Json::array();
  for (const RdmaPort& port : ports)
    all.push_back({{"device", port.device},
                   {"number", port.number},
                   {"state", or_null(port.state)},
                   {"link_layer", or_null(port.link_layer)},
                   {"bytes_per_second", known(port.bytes_per_second)},
                   {"netdev", or_null(port.netdev)}});
  return all;
}

Json pair_json(const NamedFunction& from, const NamedFunction& to) {
  const std::vector<Hop> hops = hops_between(from.pci->hops, to.pci->hops);
  const std::optional<Hop> least = narrowest(hops);
  Json passed = Json::array();
  for (const Hop& hop : hops) passed.push_back(hop.address);
  return {{"from", from.name},
          {"to", to.name},
          {"class", to_string(distance_between(place_of(*from.pci), place_of(*to.pci)))},
          {"hops", passed},
          {"narrowest", least ? hop_json(*least) : Json(nullptr)}};
}

Json best_pairs_json(const Machine& machine) {
  Json all = Json::array();
  for (const BestPair& pair : best_pairs(machine))
    all.push_back({{"gpu", fmt::format("GPU{}", pair.gpu)},
                   {"nic", fmt::format("NIC{}", pair.nic)},
                   {"device", or_null(pair.port.device)},
                   {"port", pair.port.device.empty() ? Json(nullptr) : Json(pair.port.number)},
                   {"class", to_string(pair.distance)},
                   {"bytes_per_second", known(pair.bytes_per_second)},
                   {"cores", pair.cores}});
  return all;
}

}  // namespace

Json topology_json(const Machine& machine, const std::string& host) {
  const std::vector<NamedFunction> functions = named_functions(machine);
  auto named = functions.begin();
  Json gpus = Json::array(), nics = Json::array(), nvmes = Json::array();
  for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) gpus.push_back(function_json(*named++));
  for (const Nic& nic : machine.nics) {
    Json one = function_json(*named++);
    one["rdma_devices"] = nic.rdma_devices;
    one["netdevs"] = nic.netdevs;
    one["ports"] = ports_json(nic.ports);
    nics.push_back(std::move(one));
  }
  for (const Nvme& nvme : machine.nvmes) {
    Json one = function_json(*named++);
    one["disks"] = nvme.disks;
    nvmes.push_back(std::move(one));
  }
  Json software = Json::array();
  for (const SoftwareNic& nic : machine.software_nics)
    software.push_back({{"name", nic.name}, {"kind", nic.kind}, {"ports", ports_json(nic.ports)}});
  Json nodes = Json::array();
  for (const NumaNode& node : machine.numa_nodes)
    nodes.push_back({{"number", node.number}, {"cores", node.cores}, {"memory_bytes", node.memory_bytes}});
  Json distances = Json::array(), node_distances = Json::array();
  for (auto from = functions.begin(); from != functions.end(); ++from) {
    for (auto to = from + 1; to != functions.end(); ++to) distances.push_back(pair_json(*from, *to));
    for (const NumaNode& node : machine.numa_nodes)
      node_distances.push_back({{"from", from->name},
                                {"numa_node", node.number},
                                {"class", to_string(distance_to_node(*from->pci, node))}});
  }
  Json document;
  document["schema"] = schema;
  document["version"] = version;
  document["commit"] = commit;
  document["host"] = or_null(host);
  document["cores"] = machine.cores;
  document["gpus"] = std::move(gpus);
  document["nics"] = std::move(nics);
  document["nvmes"] = std::move(nvmes);
  document["software_nics"] = std::move(software);
  document["numa_nodes"] = std::move(nodes);
  document["distances"] = std::move(distances);
  document["numa_distances"] = std::move(node_distances);
  document["best_pairs"] = best_pairs_json(machine);
  return document;
}

}  // namespace gdrbench::report
