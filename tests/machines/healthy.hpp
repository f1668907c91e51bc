#pragma once

#include "machines/machine.hpp"

namespace gdrbench::machines {

/// What every healthy Linux machine with GPUs and NICs has, without CPUs and devices.
Machine server();

/// Two sockets; behind each a PCIe switch with a GPU and a ConnectX-7, as in a DGX.
Machine dgx();

}  // namespace gdrbench::machines
