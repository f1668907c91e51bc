#include "machines/large.hpp"

#include <fmt/format.h>

#include "machines/healthy.hpp"

namespace gdrbench::machines {

void add_nvme(Machine& machine, const Way& way, int numa_node, const std::string& disk) {
  machine.add_function({.way = way,
                        .config = {.vendor = 0x144d, .device = 0xa80a, .class_code = 0x010802},
                        .numa_node = numa_node,
                        .driver = "nvme",
                        .link_speed = "16.0 GT/s PCIe",
                        .link_width = 4});
  const std::string pci = machine.folder_of(way.back());
  const std::string block = fmt::format("{}/nvme/{}/{}", pci, disk.substr(0, disk.find('n', 4)), disk);
  machine.tree.file(block + "/size", "3750748848");
  machine.tree.file(block + "/dev", "259:0");
  machine.tree.link("sys/class/block/" + disk, block);
}

void add_rxe(Machine& machine, const std::string& name, const std::string& netdev) {
  const std::string device = "sys/devices/virtual/infiniband/" + name;
  machine.tree.link("sys/class/infiniband/" + name, device);
  machine.tree.file(device + "/parent", netdev);
  machine.tree.file(device + "/node_type", "1: CA");
  machine.tree.file(device + "/ports/1/state", "4: ACTIVE");
  machine.tree.file(device + "/ports/1/link_layer", "Ethernet");
  machine.tree.file(device + "/ports/1/rate", "2.5 Gb/sec (1X SDR)");
}

Machine large() {
  Machine machine = server();
  machine.tree.file("sys/devices/system/cpu/online", "0-31");
  machine.add_numa_node(0, "0-15");
  machine.add_numa_node(1, "16-31");
  constexpr int switches = 4, places = 4;
  for (int which = 0; which < switches; ++which) {
    const int node = which / 2;
    const int bus = 0x10 + which * 0x30;
    const auto below_switch = [&](int port) {
      return Way{fmt::format("pci0000:{:02x}", bus), fmt::format("0000:{:02x}:01.0", bus),
                 fmt::format("0000:{:02x}:00.0", bus + 1), fmt::format("0000:{:02x}:{:02x}.0", bus + 2, port),
                 fmt::format("0000:{:02x}:00.0", bus + 3 + port)};
    };
    for (int place = 0; place < places; ++place) {
      const int number = which * places + place;
      machine.add_gpu(below_switch(place), node);
      machine.add_nic(below_switch(places + place), node, fmt::format("mlx5_{}", number),
                      fmt::format("eth{}", number));
    }
    add_nvme(machine, below_switch(2 * places), node, fmt::format("nvme{}n1", which));
  }
  return machine;
}

Machine plain() {
  Machine machine;
  machine.tree.file("proc/sys/kernel/osrelease", "6.1.0-31-amd64");
  machine.tree.file("sys/devices/system/cpu/online", "0-3");
  machine.add_numa_node(0, "0-3");
  return machine;
}

}  // namespace gdrbench::machines
