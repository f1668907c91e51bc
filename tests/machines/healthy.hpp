#pragma once

#include "machines/machine.hpp"

namespace gdrbench::machines {

/// Two sockets; behind each a PCIe switch with a GPU and a ConnectX-7, as in a DGX.
Machine dgx();

}  // namespace gdrbench::machines
