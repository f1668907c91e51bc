#pragma once

#include <span>
#include <string_view>

namespace gdrbench::doctor {

/// text: what the file holds. name: that it is there, and no more. link: where it points, and an empty folder
/// there. lines: only those that name one of record_words(). subnets: of a table of routes, those that
/// netdevs are attached to. tree: all files below, three folders deep.
enum class Take { text, name, link, lines, subnets, tree };

/// A path whose parts may hold `*`.
struct Recorded {
  std::string_view path;
  Take take;
};

/// What is recorded of a machine, beside its PCI functions and modules.
std::span<const Recorded> record_list();

/// What is recorded of each kernel module whose name holds one of record_words(), below its folder.
std::span<const Recorded> record_list_of_modules();

/// What is recorded of each PCI function that may lie between a GPU and a NIC, below its folder.
std::span<const Recorded> record_list_of_pci();

/// Modules and symbols that checks may look for in long lists.
std::span<const std::string_view> record_words();

}  // namespace gdrbench::doctor
