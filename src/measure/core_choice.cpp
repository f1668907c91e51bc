#include "measure/core_choice.hpp"

#include <fmt/format.h>

#include "topology/cores.hpp"

namespace gdrbench::measure {
namespace {

using topology::common_cores;
using topology::count_cores;

// A thread that polls, at each end when both are on this node, and room for what else the process does.
constexpr int fewest_cores = 4;

bool are_all(const std::string& some, const std::string& all) {
  return common_cores(some, all) == common_cores(all, all);
}

std::string places(const CoreQuestion& question) {
  if (question.nic_cores.empty()) return question.gpu;
  if (question.gpu_cores.empty()) return question.nic;
  if (common_cores(question.nic_cores, question.gpu_cores).empty())
    return fmt::format("{}, not to {}", question.nic, question.gpu);
  return fmt::format("{} and {}", question.nic, question.gpu);
}

std::string no_place(const CoreQuestion& question) {
  if (question.nic.empty()) return "there is no NIC or GPU to be next to";
  return fmt::format("{} has no place on the PCI buses{}", question.nic,
                     question.gpu.empty() ? "" : ", and that of " + question.gpu + " is not known");
}

}  // namespace

CoreChoice choose_cores(const CoreQuestion& question) {
  const auto not_bound = [&](const std::string& why) {
    return CoreChoice{.bound = false, .cores = question.allowed_cores, .why = "not bound: " + why};
  };
  if (question.bind == BindBy::none) return not_bound("--bind none");
  const std::string near = topology::cores_next_to_both(question.nic_cores, question.gpu_cores);
  if (near.empty()) return not_bound(no_place(question));
  if (question.machine_cores.empty() || question.allowed_cores.empty())
    return not_bound("the cores of this machine are not known");
  if (!are_all(question.allowed_cores, question.machine_cores))
    return not_bound(fmt::format("this process was given cores {} before", question.allowed_cores));
  if (are_all(near, question.allowed_cores)) return not_bound("all cores are equally near");
  const std::string usable = common_cores(near, question.allowed_cores);
  if (const int count = count_cores(usable); count < fewest_cores)
    return not_bound(fmt::format("{} of this process's cores {} next to {}, and an end needs {}", count,
                                 count == 1 ? "is" : "are", places(question), fewest_cores));
  return {.bound = true, .cores = usable, .why = "next to " + places(question)};
}

}  // namespace gdrbench::measure
