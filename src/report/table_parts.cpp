#include "report/table_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.hpp"
#include "gdrbench/size.hpp"
#include "report/figures.hpp"
#include "report/text_table.hpp"
#include "report/units.hpp"
#include "topology/pci_path.hpp"

namespace gdrbench::report {
namespace {

std::string fabric_text(const FabricDescription& fabric) {
  std::string text = fmt::format("fabric {}", to_string(fabric.kind));
  if (!fabric.device.empty()) text += " " + fabric.device;
  if (fabric.kind == FabricKind::none) return text + " (no RDMA figures)";
  if (is_functional(fabric.kind)) text += " (functional, not a performance result)";
  return text;
}

// "memory host", or "memory host, cuda" when the cases differ; empty without cases.
template <class E>
std::string names_of(const ResultDocument& document, E Case::*field) {
  std::string text;
  for (const auto& entry : EnumNames<E>::names) {
    const bool used =
        std::any_of(document.cases.begin(), document.cases.end(), [&](const CaseResult& result) {
          return result.test_case.*field == entry.first && !is_baseline(result.test_case.path);
        });
    if (used) text += fmt::format("{}{}", text.empty() ? "" : ", ", entry.second);
  }
  return text.empty() ? text : fmt::format("{} {}", EnumNames<E>::what, text);
}

// "GPU 0 ↔ mlx5_0 PIX", where the proof of a verbs path tells it. The other end's words are not relied on.
std::string place_text(const nlohmann::json& proof) {
  if (!proof.is_object() || !proof.contains("gpu_nic_distance") || !proof.contains("gpu")) return "";
  const nlohmann::json& distance = proof.at("gpu_nic_distance");
  const nlohmann::json& gpu = proof.at("gpu");
  const nlohmann::json device =
      proof.value("wire", nlohmann::json::object()).value("device", nlohmann::json());
  if (!distance.is_string() || !gpu.is_number_integer() || !device.is_string()) return "";
  return fmt::format("GPU {} ↔ {} {}", gpu.get<int>(), printable(device.get<std::string>()),
                     topology::to_string(topology::pci_distance(distance.get<std::string>())));
}

// "cores 0-15" of an end that was bound.
std::string cores_text(const nlohmann::json& proof) {
  if (!proof.is_object() || !proof.contains("binding") || !proof.contains("cores")) return "";
  const nlohmann::json& why = proof.at("binding");
  const nlohmann::json& cores = proof.at("cores");
  if (!why.is_string() || !cores.is_string() || !why.get<std::string>().starts_with("next to ")) return "";
  return "cores " + printable(cores.get<std::string>());
}

// Why an end was not bound; empty where it was, or does not say.
std::string unbound_text(const nlohmann::json& proof) {
  constexpr std::string_view lead = "not bound: ";
  if (!proof.is_object() || !proof.contains("binding") || !proof.at("binding").is_string()) return "";
  const auto why = proof.at("binding").get<std::string>();
  return why.starts_with(lead) ? printable(why.substr(lead.size())) : "";
}

// The first that an end's proofs have to say.
template <class Text>
std::string first_text(const ResultDocument& document, const char* end, Text text_of) {
  for (const CaseResult& result : document.cases)
    if (result.proof.contains(end))
      if (std::string text = text_of(result.proof.at(end)); !text.empty()) return text;
  return "";
}

// "GPU 0 ↔ mlx5_0 PIX, cores 0-15"
std::string places_text(const ResultDocument& document, const char* end) {
  std::string text = first_text(document, end, place_text);
  if (const std::string cores = first_text(document, end, cores_text); !cores.empty())
    text += (text.empty() ? "" : ", ") + cores;
  return text;
}

std::string unbound_text(const ResultDocument& document) {
  const auto of = [&](const char* end) {
    return first_text(document, end, [](const nlohmann::json& proof) { return unbound_text(proof); });
  };
  std::string here = of("initiator");
  const std::string there = of("responder");
  if (here == there) return here;
  if (here.empty()) return "responder: " + there;
  return "initiator: " + here + (there.empty() ? "" : "; responder: " + there);
}

std::string repetitions_text(const ResultDocument& document) {
  std::size_t fewest = 0;
  std::size_t most = 0;
  for (const CaseResult& result : document.cases) {
    const std::size_t count = result.repetitions.size();
    fewest = &result == document.cases.data() ? count : std::min(fewest, count);
    most = std::max(most, count);
  }
  if (fewest == most) return fmt::format("{} repetition{}", most, most == 1 ? "" : "s");
  return fmt::format("{} to {} repetitions", fewest, most);
}

// Settings of the bandwidth cases that are not the defaults, where all cases share them; distinction() tells
// those that differ.
std::string settings_text(const ResultDocument& document) {
  const Case defaults;
  std::vector<Case> cases;
  for (const CaseResult& result : document.cases) cases.push_back(result.test_case);
  const auto shared = [&](auto field) {
    return !cases.empty() && field(cases.front()) != field(defaults) &&
           std::all_of(cases.begin(), cases.end(),
                       [&](const Case& c) { return field(c) == field(cases.front()); });
  };
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " · ") + part; };
  if (shared([](const Case& c) { return c.staging.variant; }))
    add(fmt::format("staging {}", to_string(cases.front().staging.variant)));
  if (shared([](const Case& c) { return c.staging.engine; }) &&
      cases.front().staging.engine != CopyEngine::automatic)
    add(fmt::format("engine {}", to_string(cases.front().staging.engine)));
  if (shared([](const Case& c) { return c.staging.slots; }) && cases.front().staging.slots != 0)
    add(fmt::format("{} chunks in flight", cases.front().staging.slots));
  if (shared([](const Case& c) { return c.staging.chunk_bytes; }) &&
      is_pipelined(cases.front().staging.variant))
    add(fmt::format("chunk {}", format_size(cases.front().staging.chunk_bytes)));
  if (shared([](const Case& c) { return c.depth; })) add(fmt::format("depth {}", cases.front().depth));
  if (shared([](const Case& c) { return c.queue_pairs; }))
    add(fmt::format("{} queue pairs", cases.front().queue_pairs));
  return text;
}

// The GPU that a case's end ran a kernel on; empty where it ran none.
std::string gpu_of(const CaseResult& result, const char* end) {
  const auto found = result.proof.find(end);
  if (found == result.proof.end()) return "";
  for (const char* part : {"observer", "load"})
    if (found->contains(part)) return found->at(part).value("gpu_uuid", "");
  return "";
}

std::string shared_gpu_text(const ResultDocument& document) {
  for (const CaseResult& result : document.cases) {
    const std::string gpu = gpu_of(result, "initiator");
    if (gpu.empty() || gpu != gpu_of(result, "responder")) continue;
    return fmt::format(
        "both ends ran their kernels on one GPU, {}, which gives the kernels of two processes turns of "
        "milliseconds: the figures are those of its schedule, and no measure of two nodes",
        gpu);
  }
  return "";
}

// A thread that polls keeps a core busy, unless it is not given one.
std::string busy_text(const ResultDocument& document) {
  constexpr double enough_pct = 90;
  double least_pct = 100;
  bool may_sleep = false;  // what is seen in memory must be polled for
  for (const CaseResult& result : document.cases) {
    const Case& c = result.test_case;
    if (c.completion != CompletionMode::poll) continue;
    // The target of a one-sided operation may sleep, unless it polls memory for it.
    if (c.op == Op::read || (c.op == Op::write && !times_messages(c.suite))) continue;
    may_sleep |= result.test_case.suite == Suite::latency;
    const std::vector<Figures> repetitions = figures(result);
    for (const CpuFigures Figures::*end : {&Figures::initiator, &Figures::responder})
      if (const auto pct = median_of(repetitions, [&](const Figures& f) { return busy_pct(f.*end); }))
        least_pct = std::min(least_pct, *pct);
  }
  if (least_pct >= enough_pct) return "";
  return fmt::format(
      "a polling end had only {:.0f} % of a core: the machine is busy or has too few cores, and figures "
      "are the scheduler's{}",
      least_pct, may_sleep ? "; try --completion event" : "");
}

// "latency 8 B kernel · bandwidth 8 MiB copy_engine in chunks of 4 MiB (rdma)": what `auto` chose at the
// initiator.
std::string auto_staging_text(const ResultDocument& document) {
  std::vector<std::string> choices;
  for (const CaseResult& result : document.cases) {
    const Case& c = result.test_case;
    if (!is_staged(c.path) || c.staging.variant != Staging::automatic || c.memory == MemoryKind::host)
      continue;
    const auto engine = result.proof.value("/initiator/path/copy_engine"_json_pointer, std::string());
    std::string choice = fmt::format("{} {} {}", to_string(c.suite), format_exact_size(c.size_bytes), engine);
    if (c.staging.chunk_bytes < c.size_bytes)
      choice += fmt::format(" in chunks of {} ({})", format_size(c.staging.chunk_bytes), to_string(c.path));
    if (std::find(choices.begin(), choices.end(), choice) == choices.end()) choices.push_back(choice);
  }
  return fmt::format("{}", fmt::join(choices, " · "));
}

// Paths that share a reason share a paragraph: "rdma, gdr" and the reason.
std::vector<std::pair<std::string, std::string>> by_reason(const std::vector<SkippedPath>& skipped) {
  std::vector<std::pair<std::string, std::string>> reasons;
  for (const SkippedPath& one : skipped) {
    const auto same = std::find_if(reasons.begin(), reasons.end(),
                                   [&](const auto& known) { return known.second == one.reason; });
    if (same == reasons.end()) {
      reasons.emplace_back(to_string(one.path), one.reason);
    } else {
      same->first += fmt::format(", {}", to_string(one.path));
    }
  }
  return reasons;
}

}  // namespace

std::string table_head(const ResultDocument& document, const TableOptions& options) {
  std::vector<std::string> parts = {fabric_text(document.fabric), names_of(document, &Case::memory),
                                    names_of(document, &Case::completion), settings_text(document),
                                    places_text(document, "initiator")};
  if (!options.peer.empty()) parts.push_back("peer " + options.peer);
  if (const std::string place = places_text(document, "responder"); !place.empty())
    parts.push_back("peer " + place);
  std::erase(parts, "");
  return wrap(printable(options.title) + "      ", parts,
              {.separator = " · ", .indent = 2, .width = options.width});
}

std::string table_foot(const ResultDocument& document, const Shown& shown, const TableOptions& options) {
  std::string text;
  const auto paragraph = [&](const std::string& lead, const std::string& body) {
    text += wrap(lead, words(body), {.indent = display_width(lead), .width = options.width});
  };
  const bool measured = std::any_of(document.cases.begin(), document.cases.end(),
                                    [](const CaseResult& result) { return !result.repetitions.empty(); });
  if (measured) {
    text += '\n';
    paragraph("", fmt::format("Medians of the repetitions{}{}.",
                              shown.extremes ? "; min and max are over all of them" : "",
                              shown.ratios ? "; ratios are geometric means over pairs" : ""));
    if (shown.no_interval)
      paragraph(
          "[–]: ",
          "an interval wider than a factor of 100 either way; raise --benchmark_repetitions to narrow it.");
    if (shown.cpu)
      paragraph("CPU: ", fmt::format("initiator + responder, user and system time{}.",
                                     shown.cpu_pct ? "; % is of one core" : ""));
    if (shown.losses) {
      paragraph("loss %: ", "a geometric mean over pairs of repetitions, with and without the GPU work.");
      paragraph("GPU work loss: ", "initiator + responder, in percent of what each did without a transfer.");
    }
  } else {
    text += "no results\n";
  }

  for (const auto& [paths, reason] : by_reason(document.skipped)) paragraph(paths + " skipped: ", reason);
  for (const auto& [paths, reason] : by_reason(document.load_skipped))
    paragraph(fmt::format("load skipped beside {}: ", paths), reason);

  if (const std::string chosen = auto_staging_text(document); !chosen.empty())
    paragraph("staging auto: ", chosen);
  if (!options.note.empty()) paragraph("", options.note);
  if (const std::string unbound = unbound_text(document); !unbound.empty())
    paragraph("not bound to cores: ", unbound);
  if (const std::string shared = shared_gpu_text(document); !shared.empty()) paragraph("note: ", shared);
  if (const std::string busy = busy_text(document); !busy.empty()) paragraph("note: ", busy);
  if (!document.complete)
    paragraph("incomplete: ",
              document.incomplete_reason.empty() ? "stopped early" : document.incomplete_reason);
  text += repetitions_text(document);
  if (!options.result_file.empty()) text += fmt::format(" · result file {}", printable(options.result_file));
  return text + '\n';
}

std::string distinction(const Case& c, std::span<const Case> all) {
  const auto differs = [&](auto field) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Case& other) { return other.suite == c.suite && field(other) != field(c); });
  };
  std::string text(to_string(c.op));
  const auto add = [&](bool shown, const std::string& part) {
    if (shown) text += " " + part;
  };
  add(!times_messages(c.suite), std::string(to_string(c.direction)));
  add(differs([](const Case& x) { return is_baseline(x.path) ? MemoryKind::host : x.memory; }),
      std::string(to_string(c.memory)));
  add(differs([](const Case& x) { return x.completion; }), std::string(to_string(c.completion)));
  add(is_staged(c.path) && differs([](const Case& x) { return x.staging.variant; }),
      std::string(to_string(c.staging.variant)));
  add(c.load != Load::none, std::string(to_string(c.load)));
  add(differs([](const Case& x) { return x.depth; }), fmt::format("depth {}", c.depth));
  add(differs([](const Case& x) { return x.queue_pairs; }), fmt::format("qp {}", c.queue_pairs));
  return text;
}

std::string cpu_cell(std::span<const Figures> repetitions, Suite suite) {
  const auto of_end = [&](const CpuFigures Figures::*end) {
    return median_of(repetitions, [&](const Figures& figures) {
      return times_messages(suite) ? busy_pct(figures.*end) : (figures.*end).seconds_per_gb;
    });
  };
  const auto initiator = of_end(&Figures::initiator);
  const auto responder = of_end(&Figures::responder);
  if (!initiator && !responder) return "–";
  return format_number(initiator) + " + " + format_number(responder);
}

std::string cpu_heading(Suite suite) {
  return times_messages(suite) ? "CPU %" : "CPU s/GB";
}

}  // namespace gdrbench::report
