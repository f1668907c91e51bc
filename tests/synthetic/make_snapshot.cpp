// Writes a synthetic machine into a folder, for `gdrbench doctor --snapshot`.
#include <fmt/format.h>

#include "synthetic/faults.hpp"

int main(int argc, char** argv) {
  using namespace gdrbench::synthetic;
  const std::vector<Scenario> all = all_scenarios();
  for (const Scenario& scenario : all)
    if (argc == 3 && scenario.name == argv[1]) {
      scenario.make().write(argv[2]);
      return 0;
    }
  fmt::print(stderr, "usage: make_snapshot NAME FOLDER; names:");
  for (const Scenario& scenario : all) fmt::print(stderr, " {}", scenario.name);
  fmt::print(stderr, "\n");
  return 2;
}
