#include "cli/doctor_record.hpp"

#include <fmt/format.h>

#include <csignal>

#include "cli/output.hpp"
#include "doctor/anonymise.hpp"
#include "doctor/record.hpp"
#include "gdrbench/interrupt.hpp"

namespace gdrbench::cli {
namespace {

/// Makes SIGINT and SIGTERM wait for as long as it lives: a second one would end the process at once.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ending, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

void record_to(const std::string& folder, const doctor::Facts& facts) {
  const doctor::RecordedTree tree =
      doctor::anonymise(doctor::record(facts.root, facts.answers), doctor::private_names(facts.root));
  throw_if_interrupted();
  {
    const HeldSignals held;  // a recording in part, beside its place, would stay
    tree.write(folder);
  }
  print_error(
      fmt::format("recorded {} files into {}; look at its README before you pass it on\n"
                  "  gdrbench doctor --snapshot {} shows what it tells",
                  tree.entries().size(), folder, folder));
  throw_if_interrupted();
}

}  // namespace gdrbench::cli
