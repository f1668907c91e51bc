#pragma once

#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "machines/machine.hpp"

namespace gdrbench::machines {

/// A machine and all that the doctor has to say of it beside "ok": "check/cause", once however many subjects
/// have it.
struct Known {
  std::string name;  ///< "dgx_without_peermem"
  std::function<Machine()> make;
  std::set<std::string> findings;
};

inline std::ostream& operator<<(std::ostream& out, const Known& known) {
  return out << known.name;
}

/// Machines of which nothing is wrong; the doctor may have something to remark.
std::vector<Known> healthy_machines();
/// What is wrong with CPUs, PCI buses, GPUs, or NVIDIA's driver.
std::vector<Known> platform_faults();
/// What is wrong with RDMA devices, ports, networks, or the limits of a process.
std::vector<Known> rdma_faults();
/// On which something was tried that failed.
std::vector<Known> probe_faults();

/// All of them.
std::vector<Known> known_machines();

}  // namespace gdrbench::machines
