#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/report.hpp"

namespace gdrbench::cli {

void add_schema(CLI::App& app, Action& chosen) {
  CLI::App* command = app.add_subcommand("schema", "Print the JSON Schema of result files");
  command->callback([&chosen] {
    chosen = [] {
      print_out(result_schema());
      return static_cast<int>(ExitStatus::done);
    };
  });
}

}  // namespace gdrbench::cli
