#pragma once

#include <span>

namespace gdrbench {

/// "0.1.0"
extern const char* const version;
/// Git commit of the build, with "-dirty" when the tree had changes; "unknown" outside a checkout.
extern const char* const commit;

struct LibraryVersion {
  const char* name;     ///< "fmt", "libibverbs", "CUDA Toolkit" …
  const char* version;  ///< of the headers that were compiled, which a shared library may be newer than
};

/// What the compiler made of the sources depends on: a figure of one build says little of another.
struct BuildInfo {
  const char* build_type;  ///< CMake's: "Release", "Debug" …; "none" where it was left empty
  const char* compiler;    ///< "GNU 12.2.0"
  const char* flags;       ///< of the C++ compiler, from the preset, the environment and the build type
  bool optimised;          ///< whether the compiler was told to optimise: a Debug build's figures are none
  std::span<const LibraryVersion> libraries;
};
extern const BuildInfo build_info;

}  // namespace gdrbench
