#pragma once

#include "machines/machine.hpp"

namespace gdrbench::machines {

/// Two sockets; behind each a PCIe switch with a GPU and a ConnectX-7, as in a DGX.
Machine dgx();

/// Two sockets without PCIe switches: GPU and ConnectX-7 of a socket below different root ports of one host
/// bridge, and a second GPU below another host bridge.
Machine two_socket();

/// Two Grace-Hopper modules with 64 KiB pages: every device below a host bridge of its own, the NIC of the
/// first module serving both.
Machine grace();

/// GPU and NIC handed to a virtual machine, with ATS on: one flat bus, which is not that of the host.
Machine virtual_machine();

}  // namespace gdrbench::machines
