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
  Machine machine = dgx();
  // Each switch has two buses above its ports; those of the first two have a GPU and a NIC already.
  struct Switch {
    int root_bus, numa_node, first_port, first_bus, more;
  };
  int number = 2, disk = 0;
  for (const auto& [root_bus, node, first_port, first_bus, more] :
       {Switch{0x17, 0, 3, 0x1d, 3}, Switch{0xb7, 1, 3, 0xbd, 3}, Switch{0x40, 0, 1, 0x43, 4},
        Switch{0x90, 1, 1, 0x93, 4}}) {
    const auto place = [root = root_bus, port = first_port, bus = first_bus](int which) {
      return Way{fmt::format("pci0000:{:02x}", root), fmt::format("0000:{:02x}:01.0", root),
                 fmt::format("0000:{:02x}:00.0", root + 1),
                 fmt::format("0000:{:02x}:{:02x}.0", root + 2, port + which),
                 fmt::format("0000:{:02x}:00.0", bus + which)};
    };
    for (int i = 0; i < more; ++i, ++number) {
      machine.add_gpu(place(2 * i), node);
      machine.add_nic(place(2 * i + 1), node, fmt::format("mlx5_{}", number), fmt::format("eth{}", number));
    }
    add_nvme(machine, place(2 * more), node, fmt::format("nvme{}n1", disk++));
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
