#include "cli/results.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>

#include "cli/output.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::cli {
namespace {

// Bytes that are not UTF-8, such as those of an odd file name in the command line, must not cost the file.
std::string as_text(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

// Equal for whatever names the same file: as writing does, it follows links, and takes what is not there yet
// by its name.
std::filesystem::path place_of(const std::string& file) {
  std::error_code error;  // which the check that it can be written will name
  const std::filesystem::path whole = std::filesystem::absolute(file, error);
  const std::filesystem::path place = std::filesystem::weakly_canonical(whole, error);
  return error ? whole.lexically_normal() : place;
}

}  // namespace

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressLine::~ProgressLine() {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::operator()(std::size_t done, std::size_t total, const std::string& now) const {
  if (terminal_) std::fputs(fmt::format("\r\033[K[{}/{}] {}", done + 1, total, now).c_str(), stderr);
}

std::string take_benchmark_out(std::vector<std::string>& benchmark_flags) {
  std::string path;
  std::erase_if(benchmark_flags, [&](const std::string& flag) {
    constexpr std::string_view out = "--benchmark_out=", format = "--benchmark_out_format=";
    if (flag.starts_with(out)) path = flag.substr(out.size());
    if (flag.starts_with(format) && flag.substr(format.size()) != "json")
      throw UsageError(fmt::format("{}: only json is written; --samples writes CSV", flag));
    return flag.starts_with(out) || flag.starts_with(format);
  });
  return path;
}

bool wants_list(const std::vector<std::string>& benchmark_flags) {
  return std::any_of(benchmark_flags.begin(), benchmark_flags.end(), [](const std::string& flag) {
    return flag == "--benchmark_list_tests" || flag == "--benchmark_list_tests=true";
  });
}

int end_list() {
  flush_out("the list");
  return static_cast<int>(ExitStatus::done);
}

std::exception_ptr nothing_measured(const ResultDocument& document) {
  return std::make_exception_ptr(Error("nothing was measured: " + document.incomplete_reason));
}

void check_distinct(const std::vector<std::string>& files) {
  std::set<std::filesystem::path> places;
  for (const std::string& file : files)
    if (!file.empty() && !places.insert(place_of(file)).second)
      throw UsageError(fmt::format("{}: two results cannot go to one file", file));
}

void check_writable(const ResultFiles& files) {
  check_distinct({files.out, files.samples, files.benchmark_out});
  for (const std::string& file : {files.out, files.samples, files.benchmark_out})
    if (!file.empty()) gdrbench::check_writable(file);
}

void hand_over(const ResultDocument& document, const ResultFiles& files,
               const std::function<std::string(const std::string& kept)>& table, std::exception_ptr failure) {
  const auto attempt = [&](const auto& write) {
    try {
      write();
      return true;
    } catch (const std::exception& fault) {
      if (failure)
        print_error(fault.what());
      else
        failure = std::current_exception();
      return false;
    }
  };
  const bool kept =
      !files.out.empty() && attempt([&] { write_file_atomically(files.out, as_text(to_json(document))); });
  if (!files.benchmark_out.empty())
    attempt([&] {
      const nlohmann::ordered_json own{{"context", document.context}, {"benchmarks", document.benchmarks}};
      write_file_atomically(files.benchmark_out, as_text(own));
    });
  if (!files.samples.empty()) attempt([&] { write_samples(files.samples, document); });
  attempt([&] { print_out(table(kept ? files.out : ""), "the table"); });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace gdrbench::cli
