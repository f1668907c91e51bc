#include "benchmarks/library.hpp"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "gdrbench/error.hpp"

namespace gdrbench::benchmarks {
namespace {

// The value of a flag of that name; absent when this is another one.
std::optional<std::string> value_of(const std::string& flag, const std::string& name) {
  if (flag == "--benchmark_" + name) return "true";
  const std::string head = "--benchmark_" + name + "=";
  if (!flag.starts_with(head)) return std::nullopt;
  return flag.substr(head.size());
}

std::size_t read_blocks(const std::string& text) {
  if (text.empty() || text.size() > 4 || text.find_first_not_of("0123456789") != std::string::npos ||
      std::stoul(text) < 1)
    throw UsageError(fmt::format("--benchmark_repetitions={}: give a whole number from 1 to 9999", text));
  return std::stoul(text);
}

void read_min_time(const std::string& text, LibraryFlags& flags) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, number);
  const std::string unit(rest, end);
  const bool whole = number == static_cast<double>(static_cast<std::uint64_t>(number));
  if (fault == std::errc{} && number > 0 && number < 1e9) {
    if (unit.empty() || unit == "s") {
      flags.run_s = number;
      return;
    }
    if (unit == "x" && whole) {
      flags.iterations = static_cast<std::uint64_t>(number);
      return;
    }
  }
  throw UsageError(
      fmt::format("--benchmark_min_time={}: give seconds (0.5 or 0.5s) or iterations (100x) of a run", text));
}

}  // namespace

LibraryFlags read_library_flags(const std::vector<std::string>& flags) {
  LibraryFlags read;
  for (const std::string& flag : flags) {
    if (const auto blocks = value_of(flag, "repetitions")) {
      read.blocks = read_blocks(*blocks);
    } else if (const auto time = value_of(flag, "min_time")) {
      read_min_time(*time, read);
    } else if (value_of(flag, "enable_random_interleaving")) {
      // As the campaign does anyway.
    } else if (flag.find("aggregates_only") != std::string::npos && !flag.ends_with("=false")) {
      throw UsageError(fmt::format("{}: results keep every repetition, so this flag is refused", flag));
    } else {
      if (const auto format = value_of(flag, "format")) {
        if (*format != "console" && *format != "json" && *format != "csv")
          throw UsageError(fmt::format("{}: use one of console, json, csv", flag));
        read.display = true;
      }
      if (const auto lists = value_of(flag, "list_tests")) read.lists = *lists != "false";
      read.passed_through.push_back(flag);
    }
  }
  return read;
}

void initialise_library(const LibraryFlags& flags) {
  // The library keeps pointing to the first one.
  static std::vector<std::string> arguments;
  arguments = {"gdrbench"};
  arguments.insert(arguments.end(), flags.passed_through.begin(), flags.passed_through.end());
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(arguments.size());
  benchmark::Initialize(&argc, argv.data());
  if (argc > 1)
    throw UsageError(fmt::format(
        "Google Benchmark does not know '{}'; known ones are --benchmark_filter, --benchmark_repetitions, "
        "--benchmark_min_time, --benchmark_format, --benchmark_out and those in its manual",
        argv[1]));
}

Silent::Silent() {
  SetErrorStream(&ignored_);
  SetOutputStream(&ignored_);
}

Gatherer::Gatherer(const LibraryFlags& flags)
    : display_(flags.display ? benchmark::CreateDefaultDisplayReporter() : nullptr) {
  json_.SetOutputStream(&text_);
  json_.SetErrorStream(&ignored_);
  SetErrorStream(&ignored_);  // "no benchmark matches" is said once for all points, by the campaign
}

bool Gatherer::ReportContext(const Context& context) {
  if (std::exchange(context_reported_, true)) return true;
  if (display_) display_->ReportContext(context);
  return json_.ReportContext(context);
}

void Gatherer::ReportRuns(const std::vector<Run>& reported) {
  json_.ReportRuns(reported);
  if (display_) display_->ReportRuns(reported);
}

void Gatherer::finish(ResultDocument& document) {
  if (!context_reported_) return;
  json_.Finalize();
  if (display_) display_->Finalize();
  const nlohmann::json own = nlohmann::json::parse(text_.str());
  document.context = own.at("context");
  for (const nlohmann::json& entry : own.at("benchmarks")) document.benchmarks.push_back(entry);
}

}  // namespace gdrbench::benchmarks
