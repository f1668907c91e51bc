#include "cli/doctor_record.hpp"

#include <fmt/format.h>

#include "base/held_signals.hpp"
#include "cli/output.hpp"
#include "doctor/anonymise.hpp"
#include "doctor/record.hpp"
#include "gdrbench/interrupt.hpp"

namespace gdrbench::cli {
void record_to(const std::string& folder, const doctor::Facts& facts) {
  const doctor::RecordedTree tree =
      doctor::anonymise(doctor::record(facts.root, facts.answers), doctor::private_names(facts.root));
  throw_if_interrupted();
  {
    // A second signal would end the process at once, and a recording in part, beside its place, would stay.
    const HeldSignals held(HeldSignals::Which::ending);
    tree.write(folder);
  }
  print_error(
      fmt::format("recorded {} files into {}; look at its README before you pass it on\n"
                  "  gdrbench doctor --snapshot {} shows what it tells",
                  tree.entries().size(), folder, folder));
  throw_if_interrupted();
}

}  // namespace gdrbench::cli
