#include <fmt/format.h>

#include "gdrbench/report.hpp"
#include "report/atomic_file.hpp"

namespace gdrbench {

void write_samples(const std::filesystem::path& path, const ResultDocument& document) {
  report::AtomicFile file(path);
  file.append("suite,path,op,memory,completion,size_bytes,repetition,index,latency_ns\n");
  for (const CaseResult& result : document.cases) {
    const Case& c = result.test_case;
    const std::string prefix =
        fmt::format("{},{},{},{},{},{}", to_string(c.suite), to_string(c.path), to_string(c.op),
                    to_string(c.memory), to_string(c.completion), c.size_bytes);
    for (std::size_t repetition = 0; repetition < result.repetitions.size(); ++repetition) {
      const RunResult& run = result.repetitions[repetition];
      if (run.ranks.empty()) continue;
      const std::vector<std::int64_t>& samples_ns = run.ranks.front().samples_ns;
      for (std::size_t index = 0; index < samples_ns.size(); ++index)
        file.append(fmt::format("{},{},{},{}\n", prefix, repetition, index, samples_ns[index]));
    }
  }
  file.commit();
}

}  // namespace gdrbench
