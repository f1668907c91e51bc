#include <fmt/format.h>

#include <cstdlib>
#include <set>

#include "doctor/check_list.hpp"
#include "doctor/evidence.hpp"
#include "doctor/host.hpp"

namespace gdrbench::doctor {
namespace {

constexpr Cause causes[] = {
    {"ok", Verdict::ok, "Every PCIe link of GPUs and NICs runs at its best."},
    {"narrower", Verdict::warn, "This PCIe link runs on fewer lanes than both of its ends have.",
     "reseat the card, riser or cable at {}; look at the slot's bifurcation in the BIOS, and at the kernel "
     "log for AER errors",
     "the machine has to be switched off"},
    {"slower", Verdict::warn, "This PCIe link runs at a lower speed than both of its ends can.",
     "sample again under load: gdrbench doctor during a gdrbench bandwidth; where it stays: reseat the card, "
     "riser or cable at {}, set the slot's speed to Auto in the BIOS",
     "the machine has to be switched off"},
    {"gpu_asleep", Verdict::info,
     "The GPU's PCIe link runs at a lower speed than it can, as is normal while it is idle: sample under "
     "load.",
     "run gdrbench doctor while gdrbench bandwidth uses the GPU"},
    {"slot_limits", Verdict::info,
     "The slot gives this card less than the card can use: fewer lanes or a lower speed.",
     "where it limits the result, move the card to a better slot"},
};

struct End {
  double speed = 0, most_speed = 0;  // transfers per second of a lane, in 1e9; 0: unknown
  std::int64_t width = 0, most_width = 0;
};

std::int64_t lanes(const topology::Root& root, const std::string& path) {
  constexpr std::int64_t widest = 32;  // 63 and 255 stand for an unknown width
  const std::int64_t number = root.number(path).value_or(0);
  return number >= 0 && number <= widest ? number : 0;
}

End read_end(const topology::Root& root, const std::string& address) {
  const std::string folder = "sys/bus/pci/devices/" + address;
  const auto speed = [&](const char* file) {
    return std::strtod(root.read(fmt::format("{}/{}", folder, file), 64).text.c_str(), nullptr);
  };
  return {.speed = speed("current_link_speed"),
          .most_speed = speed("max_link_speed"),
          .width = lanes(root, folder + "/current_link_width"),
          .most_width = lanes(root, folder + "/max_link_width")};
}

Evidence seen(const std::string& address, const End& end) {
  return {fmt::format("/sys/bus/pci/devices/{}/{{current,max}}_link_*", address),
          fmt::format("{} GT/s x{} of {} GT/s x{}", end.speed, end.width, end.most_speed, end.most_width)};
}

// The link between a port and what is plugged into it.
void look_at(const Check& self, const topology::Root& root, const std::string& port,
             const std::string& plugged, bool is_gpu, bool is_card, std::vector<Finding>& findings) {
  const End above = read_end(root, port), below = read_end(root, plugged);
  const auto most_width = std::min(above.most_width, below.most_width);
  const double most_speed = std::min(above.most_speed, below.most_speed);
  const std::vector<Evidence> evidence = {seen(port, above), seen(plugged, below)};
  // Zero lanes or speed: nobody tells, or a link that is down.
  if (below.width > 0 && below.width < most_width)
    findings.push_back(find(self, "narrower", plugged, evidence));
  if (below.speed > 0 && below.speed < most_speed)
    findings.push_back(find(self, is_gpu ? "gpu_asleep" : "slower", plugged, evidence));
  const bool has_lesser_slot = (above.most_width > 0 && above.most_width < below.most_width) ||
                               (above.most_speed > 0 && above.most_speed < below.most_speed);
  if (is_card && has_lesser_slot) findings.push_back(find(self, "slot_limits", plugged, evidence));
}

std::vector<Finding> run(const Check& self, const Facts& facts) {
  // A guest is shown links that the hypervisor made up.
  if (is_virtual_machine(facts.root)) return {};
  std::vector<Finding> findings;
  std::set<std::string> known;
  const auto follow = [&](const topology::PciFunction& function, bool is_gpu) {
    const std::vector<std::string>& way = function.way;
    // From the card upwards every second step is a link; the others are within a switch.
    for (std::size_t at = way.size(); at > 2; at -= std::min<std::size_t>(at, 2)) {
      const bool is_card = at == way.size();
      // Functions of one card share their link.
      if (!known.insert(way[at - 2]).second) break;
      look_at(self, facts.root, way[at - 2], way[at - 1], is_gpu && is_card, is_card, findings);
    }
  };
  for (const topology::Gpu& gpu : facts.machine.gpus) follow(gpu.pci, true);
  for (const topology::Nic* nic : rdma_nics(facts.machine)) follow(nic->pci, false);
  if (findings.empty() && !known.empty()) findings.push_back(find(self, "ok", "", {}));
  return findings;
}

}  // namespace

const Check pcie_link_check = {
    .name = "pcie_link",
    .question = "Does every PCIe link of GPUs and NICs run at its best?",
    .looks_at =
        "/sys/bus/pci/devices/*/{current,max}_link_{speed,width} of each GPU, each RDMA NIC and the "
        "bridges above them",
    .layer = Layer::performance,
    .causes = causes,
    .run = run};

}  // namespace gdrbench::doctor
