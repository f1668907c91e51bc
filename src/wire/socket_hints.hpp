#pragma once

#include <string>

namespace gdrbench::wire {

/// What usually causes an errno value of a socket and what to try; "" where nothing is known. `address` is
/// "10.0.0.2:7471", `port` its port.
std::string connect_hint(int errno_value, const std::string& address, unsigned port);
std::string listen_hint(int errno_value);
std::string accept_hint(int errno_value);
/// Of a connection that was there.
std::string lost_hint(int errno_value);

}  // namespace gdrbench::wire
