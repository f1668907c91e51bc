#include "doctor/collect.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <functional>
#include <sstream>

#include "doctor/ask_drivers.hpp"
#include "doctor/kernel_log.hpp"
#include "doctor/steps.hpp"
#include "topology/root.hpp"

namespace gdrbench::doctor {
namespace {

using nlohmann::json;
using Step = std::function<json()>;

ProbeAnswer no_answer(const char* what, const std::string& device, const StepResult& result) {
  return {.what = what,
          .device = device,
          .gpu = "",
          .outcome = std::string(outcome(result.end)),
          .text = result.text};
}

void collect_cuda(Answers& answers, const CollectOptions& options) {
  const Step steps[] = {[] { return to_json(ask_cuda()); }};
  const StepResult result = run_steps(steps, options.patience).front();
  if (result.end != End::finished) {
    answers.cuda_unavailable = fmt::format("CUDA gave no answer: {}", result.text);
    answers.probes.push_back(no_answer("ask cuda", "", result));
    return;
  }
  Answers found = answers_from_json(result.answer);
  answers.cuda_unavailable = std::move(found.cuda_unavailable);
  answers.gpus = std::move(found.gpus);
  answers.probes.insert(answers.probes.end(), found.probes.begin(), found.probes.end());
}

void collect_verbs(Answers& answers, const CollectOptions& options) {
  const Step list[] = {[] { return json(ask_verbs_devices()); }};
  const StepResult listed = run_steps(list, options.patience).front();
  if (listed.end != End::finished || !listed.answer.is_array()) {
    answers.probes.push_back(no_answer("ask verbs", "", listed));
    return;
  }
  answers.verbs_asked = true;
  std::vector<std::string> devices;
  for (const json& name : listed.answer)
    if (name.is_string()) devices.push_back(name.get<std::string>());
  std::vector<Step> steps;
  steps.reserve(devices.size());
  for (const std::string& device : devices)
    steps.emplace_back([device] {
      Answers one;
      one.rdma.push_back(ask_verbs(device));
      return to_json(one);
    });
  const std::vector<StepResult> results = run_steps(steps, options.patience);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Answers one = answers_from_json(results[i].answer);
    if (!one.rdma.empty()) {
      answers.rdma.push_back(one.rdma.front());
      continue;
    }
    // Listed all the same: no provider is missing.
    answers.rdma.push_back(
        {.device = devices[i], .fabric = "", .open_errno = {}, .dmabuf_probe = {}, .ports = {}});
    answers.probes.push_back(no_answer("ask verbs", devices[i], results[i]));
  }
}

// Root in a container may lack what counts: CAP_SYS_ADMIN, without which the kernel gives only the first 64
// bytes of PCI configuration space.
std::optional<bool> is_privileged() {
  constexpr int cap_sys_admin = 21;
  std::istringstream status(topology::Root().read("proc/self/status").text);
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("CapEff:")) {
      const std::uint64_t capabilities = std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 16);
      return (capabilities >> cap_sys_admin & 1) != 0;
    }
  return std::nullopt;
}

}  // namespace

Answers collect_answers(const CollectOptions& options) {
  Answers answers;
  collect_cuda(answers, options);
  collect_verbs(answers, options);
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
    answers.memlock_bytes = limit.rlim_cur == RLIM_INFINITY ? ~std::uint64_t{0} : limit.rlim_cur;
  answers.privileged = is_privileged();
  answers.kernel_log = read_kernel_log();
  return answers;
}

}  // namespace gdrbench::doctor
