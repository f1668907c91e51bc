#pragma once

#include <cstdint>

#include "doctor/answers.hpp"
#include "topology/machine.hpp"
#include "topology/root.hpp"

namespace gdrbench::doctor {

/// All that checks know: they look at nothing else, so that a recorded machine gives the verdicts it had.
struct Facts {
  topology::Root root;
  topology::Machine machine;
  Answers answers;
  std::uint64_t request_bytes = 64 << 20;  ///< the GPU memory that is to be registered at once
};

}  // namespace gdrbench::doctor
