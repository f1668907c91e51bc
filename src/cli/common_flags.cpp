#include "cli/common_flags.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "cli/fabric.hpp"
#include "gdrbench/error.hpp"
#include "gdrbench/session.hpp"

namespace gdrbench::cli {
namespace {

std::uint16_t parse_port(const std::string& text, const std::string& whole) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port < 1 || port > 65535)
    throw UsageError(fmt::format("address '{}': '{}' is not a port; ports are 1 to 65535", whole, text));
  return static_cast<std::uint16_t>(port);
}

std::string trimmed(const std::string& text) {
  const char* blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace

void refuse_empty_values(CLI::App& command) {
  const auto holds_something = [](std::string& text) {
    return text.empty() ? std::string("the value is empty, as that of an unset variable is") : std::string();
  };
  // Ahead of the options' own checks, none of which then has to think of it.
  for (CLI::Option* option : command.get_options({})) option->transform(CLI::Validator(holds_something, ""));
}

CLI::Option* add_file_flag(CLI::App& command, const char* flag, std::string& path, const char* help) {
  return command.add_option(flag, path, help)->type_name("FILE");
}

void refuse_benchmark_flags(const Invocation& invocation) {
  if (!invocation.benchmark_flags.empty())
    throw UsageError(fmt::format("{}: this command measures nothing", invocation.benchmark_flags.front()));
}

CLI::Option* add_time_budget(CLI::App& command, double& seconds) {
  const auto lasts = [](const std::string& text) {
    constexpr double most_s = 1e6;  // 11 days; deadlines, which count nanoseconds, must not overflow
    double value = 0;
    const bool valid = CLI::detail::lexical_cast(text, value) && value > 0 && value <= most_s;
    return valid ? std::string()
                 : fmt::format("'{}' is no number of seconds above 0 and up to {:.0f}", text, most_s);
  };
  return command.add_option("--time-budget", seconds, "Seconds for the whole run")
      ->capture_default_str()
      ->check(lasts);
}

void add_local_flags(CLI::App& command, LocalFlags& flags, const char* gpu_help, const char* sizes_help) {
  command.add_option("--gpu", flags.gpu, gpu_help)->capture_default_str();
  command.add_option("--sizes", flags.sizes, sizes_help);
  command.add_option("--fabric", flags.fabric, fabric_help)->capture_default_str();
  add_time_budget(command, flags.time_budget_s);
  add_file_flag(command, "--out", flags.out, "Write the result file (JSON)");
  command.footer("Every --benchmark_* flag goes to Google Benchmark.");
}

HostPort parse_host(const std::string& text, std::uint16_t otherwise) {
  if (text.empty()) throw UsageError("the address of the server is empty; give a host name or an IP address");
  if (text.front() == '[') {
    const std::size_t close = text.find(']');
    if (close == std::string::npos || close == 1)
      throw UsageError(fmt::format("address '{}': an IPv6 address is written [ADDRESS]:PORT", text));
    const std::string rest = text.substr(close + 1);
    if (!rest.empty() && rest.front() != ':')
      throw UsageError(
          fmt::format("address '{}': unexpected '{}' after ']'; write [ADDRESS]:PORT", text, rest));
    return {text.substr(1, close - 1), rest.empty() ? otherwise : parse_port(rest.substr(1), text)};
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || text.find(':', colon + 1) != std::string::npos) return {text, otherwise};
  if (colon == 0) throw UsageError(fmt::format("address '{}': there is no host before ':'", text));
  return {text.substr(0, colon), parse_port(text.substr(colon + 1), text)};
}

HostPort server_address(const std::string& text, std::optional<int> port) {
  if (port && (*port < 1 || *port > 65535))
    throw UsageError(fmt::format("--port {}: ports are 1 to 65535", *port));
  HostPort address = parse_host(text, 0);
  if (address.port != 0 && port)
    throw UsageError(fmt::format("--port {}: '{}' names a port too; leave one of them out", *port, text));
  if (address.port == 0) address.port = static_cast<std::uint16_t>(port.value_or(default_port));
  return address;
}

bool is_loopback(const std::string& address) {
  if (address == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, address.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, address.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

void require_gpu(const char* flag, std::optional<int> asked, const doctor::Answers& answers) {
  if (!asked || (*asked >= 0 && static_cast<std::size_t>(*asked) < answers.gpus.size())) return;
  throw UsageError(fmt::format("{} {}: CUDA has {} GPU{} here, numbered from 0{}{}; see gdrbench topology",
                               flag, *asked, answers.gpus.size(), answers.gpus.size() == 1 ? "" : "s",
                               answers.cuda_unavailable.empty() ? "" : ": ", answers.cuda_unavailable));
}

void require_device(const char* flag, const std::string& asked, const doctor::Answers& answers) {
  std::string known;
  for (const doctor::RdmaAnswer& device : answers.rdma) {
    if (device.device == asked) return;
    known += (known.empty() ? "" : ", ") + device.device;
  }
  if (asked.empty()) return;
  throw UsageError(fmt::format("{} '{}': there is no such RDMA device; libibverbs has {}", flag, asked,
                               known.empty() ? "none" : known));
}

std::string read_key(const std::string& file) {
  if (file.empty()) {
    const char* value = std::getenv("GDRBENCH_KEY");
    return value != nullptr ? trimmed(value) : "";
  }
  std::ifstream in(file);
  if (!in) {
    const int fault = errno;
    throw UsageError(fmt::format("--key-file {}: {} ({}); give a file that holds the key", file,
                                 errno_name(fault), std::strerror(fault)));
  }
  std::ostringstream content;
  content << in.rdbuf();
  std::string key = trimmed(content.str());
  if (key.empty()) throw UsageError(fmt::format("--key-file {}: the file holds no key", file));
  return key;
}

}  // namespace gdrbench::cli
