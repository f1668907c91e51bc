#pragma once

#include <filesystem>

#include "topology/root.hpp"

namespace gdrbench::topology {

/// The root of a recorded machine. Throws UsageError, which begins with `named` ("--snapshot DIR"), where the
/// folder is none, holds no recording, or holds what none ever has: a device, a pipe or a socket, which would
/// be waited for, or a link that leads out of it, behind which lie files of this machine.
Root open_recording(const std::filesystem::path& folder, const std::string& named);

}  // namespace gdrbench::topology
