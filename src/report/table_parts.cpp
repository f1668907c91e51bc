#include "report/table_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error_text.hpp"
#include "gdrbench/size.hpp"
#include "gdrbench/version.hpp"
#include "report/figures.hpp"
#include "report/text_table.hpp"

namespace gdrbench::report {
namespace {

std::string fabric_text(const FabricDescription& fabric) {
  std::string text = fmt::format("fabric {}", to_string(fabric.kind));
  if (fabric.device) text += " " + *fabric.device;
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

// "GPU 0 ↔ mlx5_0 PIX", where the proof of a verbs path tells it.
std::string place_text(const PathProof& proof) {
  if (!proof.gpu || !proof.verbs) return "";
  return fmt::format("GPU {} ↔ {} {}", *proof.gpu, proof.verbs->device,
                     to_string(proof.gpu_nic_distance.value_or(PciDistance::unknown)));
}

// "cores 0-15" of a rank that was bound.
std::string cores_text(const PathProof& proof) {
  return proof.binding.why.starts_with("next to ") ? "cores " + proof.binding.cores : "";
}

// Why a rank was not bound; empty where it was, or does not say.
std::string unbound_reason(const PathProof& proof) {
  constexpr std::string_view lead = "not bound: ";
  return proof.binding.why.starts_with(lead) ? proof.binding.why.substr(lead.size()) : "";
}

// The first that a rank's proofs have to say.
template <class Text>
std::string first_text(const ResultDocument& document, std::size_t rank, Text text_of) {
  for (const CaseResult& result : document.cases)
    if (rank < result.proofs.size())
      if (std::string text = text_of(result.proofs[rank]); !text.empty()) return text;
  return "";
}

// "GPU 0 ↔ mlx5_0 PIX, cores 0-15"; of several pairs their rows tell the place.
std::string places_text(const ResultDocument& document, std::size_t rank) {
  if (std::any_of(document.cases.begin(), document.cases.end(),
                  [](const CaseResult& result) { return !result.test_case.pair.empty(); }))
    return "";
  std::string text = first_text(document, rank, place_text);
  if (const std::string cores = first_text(document, rank, cores_text); !cores.empty())
    text += (text.empty() ? "" : ", ") + cores;
  return text;
}

// Of the ranks of the suites that were measured; all of one document have the same.
std::span<const std::string_view> roles_in(const ResultDocument& document) {
  if (document.cases.empty()) return {};
  return spec(document.cases.front().test_case.suite).roles;
}

// By rank where they differ.
std::string unbound_text(const ResultDocument& document) {
  const auto roles = roles_in(document);
  std::vector<std::string> reasons;
  for (std::size_t rank = 0; rank < roles.size(); ++rank)
    reasons.push_back(first_text(document, rank, unbound_reason));
  if (std::all_of(reasons.begin(), reasons.end(), [&](const auto& one) { return one == reasons.front(); }))
    return reasons.empty() ? "" : reasons.front();
  std::string text;
  for (std::size_t rank = 0; rank < roles.size(); ++rank)
    if (!reasons[rank].empty())
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", roles[rank], reasons[rank]);
  return text;
}

std::string repetitions_text(const ResultDocument& document) {
  std::size_t min_count = 0, max_count = 0;
  for (const CaseResult& result : document.cases) {
    const std::size_t count = result.repetitions.size();
    min_count = &result == document.cases.data() ? count : std::min(min_count, count);
    max_count = std::max(max_count, count);
  }
  if (min_count == max_count) return fmt::format("{} repetition{}", max_count, max_count == 1 ? "" : "s");
  return fmt::format("{} to {} repetitions", min_count, max_count);
}

// Settings that are not the defaults, where all cases share them; distinction() tells those that differ. What
// is timed message by message has one in flight on one queue pair.
std::string settings_text(const ResultDocument& document) {
  const Case defaults;
  std::vector<Case> cases, streams;
  for (const CaseResult& result : document.cases) {
    cases.push_back(result.test_case);
    if (!times_messages(result.test_case.suite)) streams.push_back(result.test_case);
  }
  const auto shared_by = [&](const std::vector<Case>& some, auto field) {
    return !some.empty() && field(some.front()) != field(defaults) &&
           std::all_of(some.begin(), some.end(),
                       [&](const Case& c) { return field(c) == field(some.front()); });
  };
  const auto shared = [&](auto field) { return shared_by(cases, field); };
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
  if (shared_by(streams, [](const Case& c) { return c.depth; }))
    add(fmt::format("depth {}", streams.front().depth));
  if (shared_by(streams, [](const Case& c) { return c.queue_pairs; }))
    add(fmt::format("{} queue pairs", streams.front().queue_pairs));
  return text;
}

// The GPU that a rank ran a kernel on; empty where it ran none.
std::string kernel_gpu(const PathProof& proof) {
  if (proof.observer && proof.observer->gpu_uuid) return *proof.observer->gpu_uuid;
  return proof.load ? proof.load->gpu_uuid : "";
}

std::string shared_gpu_text(const ResultDocument& document) {
  for (const CaseResult& result : document.cases) {
    if (result.proofs.size() < 2) continue;
    const std::string gpu = kernel_gpu(result.proofs[0]);
    if (gpu.empty() || gpu != kernel_gpu(result.proofs[1])) continue;
    return fmt::format(
        "both ends ran their kernels on one GPU, {}, which gives the kernels of two processes turns of "
        "milliseconds: the figures are those of its schedule, and no measure of two nodes",
        gpu);
  }
  return "";
}

std::size_t ranks_of(std::span<const Figures> repetitions) {
  return repetitions.empty() ? 0 : repetitions.front().cpu.size();
}

// "gdr 12 of 5000": what an unreliable transport lost, over all repetitions of a path.
std::string lost_text(const ResultDocument& document) {
  std::string text;
  for (const PathSpec& path : all_paths) {
    std::uint64_t lost = 0, messages = 0;
    for (const CaseResult& result : document.cases) {
      if (result.test_case.path != path.path) continue;
      for (const RunResult& run : result.repetitions) {
        lost += messages_lost(run);
        messages += run.iterations;
      }
    }
    if (lost > 0) text += fmt::format("{}{} {} of {}", text.empty() ? "" : ", ", path.name, lost, messages);
  }
  return text;
}

// A thread that polls keeps a core busy, unless it is not given one.
std::string busy_text(const ResultDocument& document) {
  constexpr double enough_pct = 90;
  double min_pct = 100;
  bool may_sleep = false;  // what is seen in memory must be polled for
  for (const CaseResult& result : document.cases) {
    const Case& c = result.test_case;
    if (c.completion != CompletionMode::poll) continue;
    // The target of a one-sided operation may sleep, unless it polls memory for it.
    if (c.op == Op::read || (c.op == Op::write && !times_messages(c.suite))) continue;
    may_sleep |= times_messages(c.suite) && spec(c.suite).has_events;
    const std::vector<Figures> repetitions = figures(result);
    for (std::size_t rank = 0; rank < ranks_of(repetitions); ++rank)
      if (const auto pct = median_of(repetitions, [&](const Figures& f) { return busy_pct(f.cpu.at(rank)); }))
        min_pct = std::min(min_pct, *pct);
  }
  if (min_pct >= enough_pct) return "";
  return fmt::format(
      "a polling end had only {:.0f} % of a core: the machine is busy or has too few cores, and figures "
      "are the scheduler's{}",
      min_pct, may_sleep ? "; try --completion event" : "");
}

// "latency 8 B kernel · bandwidth 8 MiB copy_engine in chunks of 4 MiB (rdma)": what `auto` chose at the
// initiator.
std::string auto_staging_text(const ResultDocument& document) {
  std::vector<std::string> choices;
  for (const CaseResult& result : document.cases) {
    const Case& c = result.test_case;
    if (!is_staged(c.path) || c.staging.variant != Staging::automatic || c.memory == MemoryKind::host)
      continue;
    const std::string engine =
        result.proofs.empty() ? "" : result.proofs.front().policy.copy_engine.value_or("");
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

std::string unoptimised_text() {
  return fmt::format(
      "gdrbench was built without optimisation (build type {}), so that its figures are those of the build "
      "and no "
      "measure of the paths; build it with -DCMAKE_BUILD_TYPE=Release",
      build_info.build_type);
}

std::string table_head(const ResultDocument& document, const TableOptions& options) {
  std::vector<std::string> parts = {fabric_text(document.fabric), names_of(document, &Case::memory),
                                    names_of(document, &Case::completion), settings_text(document),
                                    places_text(document, 0)};
  if (!options.remote.empty()) parts.push_back("remote " + options.remote);
  if (const std::string place = places_text(document, 1); !place.empty()) parts.push_back("remote " + place);
  std::erase(parts, "");
  for (std::string& part : parts) part = printable(part);  // proofs hold what the other ranks say
  return wrap(printable(options.title) + "      ", parts,
              {.separator = " · ", .indent = 2, .width = options.width});
}

std::string table_foot(const ResultDocument& document, const Shown& shown, const TableOptions& options) {
  std::string text;
  const auto paragraph = [&](const std::string& lead, const std::string& body) {
    text += wrap(lead, words(printable(body)), {.indent = display_width(lead), .width = options.width});
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
      paragraph("CPU: ", fmt::format("{}, user and system time{}.", fmt::join(roles_in(document), " + "),
                                     shown.cpu_pct ? "; % is of one core" : ""));
    if (shown.losses) {
      paragraph("loss %: ", "a geometric mean over pairs of repetitions, with and without the GPU work.");
      paragraph("GPU work loss: ", fmt::format("{}, in percent of what each did without a transfer.",
                                               fmt::join(roles_in(document), " + ")));
    }
    if (shown.pairs)
      paragraph(
          "together: ",
          "all pairs at once; loss % is of each pair's figure alone, a geometric mean over repetitions.");
  } else {
    text += "no results\n";
  }

  for (const auto& [paths, reason] : by_reason(document.skipped)) paragraph(paths + " skipped: ", reason);
  for (const auto& [paths, reason] : by_reason(document.load_skipped))
    paragraph(fmt::format("load skipped beside {}: ", paths), reason);

  if (const std::string chosen = auto_staging_text(document); !chosen.empty())
    paragraph("staging auto: ", chosen);
  if (!options.note.empty()) paragraph("", options.note);
  if (!options.optimised) paragraph("note: ", unoptimised_text());
  if (const std::string unbound = unbound_text(document); !unbound.empty())
    paragraph("not bound to cores: ", unbound);
  if (const std::string shared = shared_gpu_text(document); !shared.empty()) paragraph("note: ", shared);
  if (const std::string lost = lost_text(document); !lost.empty())
    paragraph("lost messages: ", lost + "; rates are those of the sender");
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
  add(!c.pair.empty(), c.pair);
  add(c.pairs_at_once > 1, fmt::format("of {} at once", c.pairs_at_once));
  add(differs([](const Case& x) { return x.depth; }), fmt::format("depth {}", c.depth));
  add(differs([](const Case& x) { return x.queue_pairs; }), fmt::format("qp {}", c.queue_pairs));
  return text;
}

std::string unit_cell(std::optional<double> figure, Metric metric) {
  const std::string_view unit = spec(metric).unit;
  if (unit == "us") return format_time_us(figure);
  if (unit == "B/s") return format_rate(figure);
  return format_number(figure);
}

std::string metric_cell(std::span<const Figures> repetitions, Metric metric) {
  const RankFigureOf of_rank = rank_figure_of(metric);
  if (of_rank == nullptr) return unit_cell(median_of(repetitions, figure_of(metric)), metric);
  std::string text;
  bool known = false;
  for (std::size_t rank = 0; rank < ranks_of(repetitions); ++rank) {
    const auto figure =
        median_of(repetitions, [&](const Figures& figures) { return of_rank(figures.cpu.at(rank)); });
    known |= figure.has_value();
    text += (rank == 0 ? "" : " + ") + unit_cell(figure, metric);
  }
  return known ? text : "–";
}

std::string percent_cell(std::optional<double> percent) {
  if (!percent) return "–";
  // What rounds to zero has no sign.
  const double shown = std::abs(*percent) < 0.05 ? 0 : *percent;
  return fmt::format("{:.1f}", shown);
}

}  // namespace gdrbench::report
