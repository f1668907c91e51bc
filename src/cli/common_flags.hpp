#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/commands.hpp"
#include "doctor/facts/facts.hpp"

/// Flags that several commands have, and what their values name: servers, keys, devices.
namespace gdrbench::cli {

/// Call it when all flags are there: an empty value of any is bad usage. CLI11 would take it for 0 or for a
/// flag that was not given.
void refuse_empty_values(CLI::App& command);

/// --out, --key-file and whatever else names a file.
CLI::Option* add_file_flag(CLI::App& command, const char* flag, std::string& path, const char* help);

/// For commands that measure nothing. Throws UsageError that begins with the flag.
void refuse_benchmark_flags(const Invocation& invocation);

/// --time-budget: seconds for the whole run, more than 0 and up to 1e6.
CLI::Option* add_time_budget(CLI::App& command, double& seconds);

/// What the commands that measure within one node share.
struct LocalFlags {
  int gpu = 0;
  std::optional<std::string> sizes;
  std::string fabric = "auto", out;
  double time_budget_s = 60;
};
void add_local_flags(CLI::App& command, LocalFlags& flags, const char* gpu_help, const char* sizes_help);

struct HostPort {
  std::string host;
  std::uint16_t port;
};

/// "node-b", "node-b:7472", "10.0.0.5", "fe80::1%eth0", "[fe80::1%eth0]:7472". Throws UsageError.
HostPort parse_host(const std::string& text, std::uint16_t otherwise);

/// The server at `text` as above; `port` is the value of --port, and the default port is taken where neither
/// names one. Throws UsageError, also where both do.
HostPort server_address(const std::string& text, std::optional<int> port);

/// Whether only this machine can connect to the address: 127.0.0.0/8, ::1, localhost.
bool is_loopback(const std::string& address);

/// Whether what a flag names is there, by what drivers answered. Both throw UsageError that begins with
/// `flag`.
void require_gpu(const char* flag, std::optional<int> asked, const doctor::Answers& answers);

/// An empty name asks for none.
void require_device(const char* flag, const std::string& asked, const doctor::Answers& answers);

/// The key from `file`, else from the environment variable GDRBENCH_KEY, else empty. Surrounding white space
/// is dropped. Throws UsageError when the file cannot be read or is empty.
std::string read_key(const std::string& file);

}  // namespace gdrbench::cli
