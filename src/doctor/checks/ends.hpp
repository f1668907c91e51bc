#pragma once

#include <vector>

#include "doctor/check.hpp"

namespace gdrbench::doctor {

/// What two machines have to have in common. Not among checks(), which look at one machine; its `run` finds
/// nothing.
extern const Check ends_check;

/// What keeps `here` and `there` from talking to each other, or slows them down, though each may be fine for
/// itself: link layer, fabric, kinds of GID, path MTU, GPU memory, driver. "ok" when nothing does; empty
/// where one of them has no active port.
std::vector<Finding> compare_ends(const Facts& here, const Facts& there);

}  // namespace gdrbench::doctor
