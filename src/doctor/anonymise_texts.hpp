#pragma once

#include <string>
#include <string_view>

/// What is left out of the texts of a recording, whatever the names and addresses of the machine.
namespace gdrbench::doctor {

/// Whether a word that may be a host's or user's name is one of the kernel, of drivers or of our texts too:
/// replacing it would tell nobody less, and spoil what checks look for. Lower case.
bool is_common_word(std::string_view word);

/// /proc/cmdline's parameter with this key may tell what a check or a reader asks for.
bool is_kept_parameter(std::string_view key);

/// Of a kernel log: without serial numbers, names of processes, command lines, and "user@host".
std::string without_private_words(const std::string& log);
/// Without "user@host", as of who built a kernel or module.
std::string without_builders(std::string text);
/// "Serial number: 123" → "Serial", line by line.
std::string without_serial_numbers(const std::string& text);
/// Of files of modprobe and of lists of modules: without comments, and without commands that they run.
std::string without_comments(const std::string& text);
/// Of /proc/kallsyms and /proc/modules: addresses of the kernel as zeros, which it shows to users.
std::string without_kernel_addresses(const std::string& text);
/// Of hwloc's XML: without names of processes and hosts, serial numbers, and all of DMI but vendor and
/// product.
std::string without_infos(const std::string& xml);
/// Without lines that begin with this.
std::string without_lines(const std::string& text, std::string_view head);

}  // namespace gdrbench::doctor
