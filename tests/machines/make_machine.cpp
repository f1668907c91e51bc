// Writes a made machine into a folder, for `gdrbench doctor --snapshot`.
#include <fmt/format.h>

#include "machines/faults.hpp"

int main(int argc, char** argv) {
  using namespace gdrbench::machines;
  const std::vector<Known> all = known_machines();
  for (const Known& known : all)
    if (argc == 3 && known.name == argv[1]) {
      known.make().write(argv[2]);
      return 0;
    }
  fmt::print(stderr, "usage: make_machine NAME FOLDER; names:");
  for (const Known& known : all) fmt::print(stderr, " {}", known.name);
  fmt::print(stderr, "\n");
  return 2;
}
