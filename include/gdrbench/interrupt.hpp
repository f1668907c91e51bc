#pragma once

namespace gdrbench {

/// Makes SIGINT and SIGTERM end every wait of the library with Interrupted. A second signal ends the process.
void handle_termination_signals();

/// Whether such a signal has arrived.
bool interrupted();

/// Throws Interrupted if a signal has arrived.
void throw_if_interrupted();

}  // namespace gdrbench
