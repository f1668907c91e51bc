#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <random>

#include "base/fields.hpp"
#include "doctor/diagnosis.hpp"
#include "doctor/record/anonymise.hpp"
#include "doctor/record/record.hpp"
#include "doctor/report.hpp"
#include "synthetic/faults.hpp"
#include "synthetic/healthy.hpp"
#include "unit/synthetic_facts.hpp"

namespace gdrbench::doctor {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Random = std::mt19937;

std::size_t below(Random& random, std::size_t limit) {
  return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
}

std::string binary(Random& random, std::size_t length) {
  std::string bytes(length, '\0');
  for (char& byte : bytes) byte = static_cast<char>(below(random, 256));
  return bytes;
}

constexpr const char* odd_texts[] = {"-1",
                                     "4294967296",
                                     "99999999999999999999999",
                                     "0x",
                                     "0-4294967295",
                                     "nan",
                                     "0-\n,,,",
                                     ": : :",
                                     "Unknown",
                                     "0x0000000000000000 0xffffffffffffffff 0x0"};

// Also as root, who may read everything: folders, pipes and loops cannot be read.
// hwloc would wait for a pipe's writer: the command refuses a tree with one.
std::string damage(const fs::path& file, Random& random, bool with_pipes) {
  const std::string before = content_of(file);
  enum { empty, huge, random_bytes, half, changed_byte, odd, folder, pipe, loop, dangling, kinds };
  const auto kind = below(random, kinds);
  if (kind < folder) {
    std::string content = before;
    if (kind == empty) content.clear();
    if (kind == huge) content = std::string(1 << 20, "0a,\n x"[below(random, 6)]);
    if (kind == random_bytes) content = binary(random, 1 + below(random, 5000));
    if (kind == half) content.resize(content.size() / 2);
    if (kind == changed_byte && !content.empty())
      content[below(random, content.size())] = static_cast<char>(below(random, 256));
    if (kind == odd) content = odd_texts[below(random, std::size(odd_texts))];
    std::ofstream(file, std::ios::binary) << content;
    return file.native() + " kind " + std::to_string(kind);
  }
  fs::remove(file);
  if (kind == folder) fs::create_directory(file);
  if (kind == pipe && with_pipes) mkfifo(file.c_str(), 0600);
  if (kind == loop) fs::create_symlink(file.filename(), file);
  if (kind == dangling) fs::create_symlink("nowhere/at/all", file);
  return file.native() + " kind " + std::to_string(kind);
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// What the doctor does with a root. `machine` stands in for reading the machine, where hwloc takes most of
// the time.
void diagnose(const fs::path& folder, const std::optional<topology::Machine>& machine) {
  const topology::Root root(folder);
  const std::string text = root.read("answers.json", 16 << 20).text;
  Answers answers;
  try {
    answers = answers_from_json(parse_bounded(text));
  } catch (const std::exception&) {  // as the command does
  }
  const Facts facts{.root = root,
                    .machine = machine ? *machine : topology::read_machine(root),
                    .answers = std::move(answers)};
  for (const Check* check : checks()) check->run(*check, facts);
}

TEST(DamagedMachine, is_diagnosed_without_a_crash_in_bounded_time) {
  const TestFolder folder("damage");
  const auto all = synthetic::all_scenarios();
  constexpr unsigned rounds = 44;
  constexpr unsigned rounds_with_hwloc = 8;  // one in so many
  std::map<std::string, topology::Machine> read_before;
  unsigned mutations = 0;
  const auto start = Clock::now();
  for (unsigned round = 0; round < rounds; ++round) {
    Random random(round);
    const synthetic::Scenario& known = all[below(random, all.size())];
    fs::remove_all(folder.path());
    known.make().write(folder.path());
    const std::vector<fs::path> files = files_in(folder.path());
    std::optional<topology::Machine> machine;
    if (round % rounds_with_hwloc != 0) {
      const auto [read, is_new] = read_before.try_emplace(known.name);
      if (is_new) read->second = topology::read_machine(topology::Root(folder.path()));
      machine = read->second;
    }
    if (files.size() > 1500) continue;  // the large machine has nothing that the others have not
    std::string done = fmt::format("round {}, {}:", round, known.name);
    for (std::size_t i = 0; i < 8; ++i)
      if (const fs::path& file = files[below(random, files.size())];
          fs::is_regular_file(fs::symlink_status(file)))
        done += fmt::format("\n  {}: {}", ++mutations, damage(file, random, machine.has_value()));
    SCOPED_TRACE(done);
    const auto before = Clock::now();
    EXPECT_NO_THROW(diagnose(folder.path(), machine));
    EXPECT_LT(Clock::now() - before, std::chrono::seconds(20));
  }
  EXPECT_GT(mutations, 300U);
  std::printf("%u damaged files in %.1f s\n", mutations,
              std::chrono::duration<double>(Clock::now() - start).count());
}

TEST(DamagedMachine, can_be_recorded) {
  const TestFolder folder("damage"), recorded("recorded");
  const auto all = synthetic::probe_faults();
  for (unsigned round = 0; round < 8; ++round) {
    Random random(round);
    fs::remove_all(folder.path());
    fs::remove_all(recorded.path());
    all[below(random, all.size())].make().write(folder.path());
    const std::vector<fs::path> files = files_in(folder.path());
    for (int i = 0; i < 30; ++i)
      if (const fs::path& file = files[below(random, files.size())];
          fs::is_regular_file(fs::symlink_status(file)))
        damage(file, random, false);
    EXPECT_NO_THROW(anonymise(record(topology::Root(folder.path()), {}), {}).write(recorded.path())) << round;
  }
}

TEST(DamagedAnswers, are_taken_as_far_as_they_fit) {
  std::vector<std::string> texts;
  for (const synthetic::Scenario& known : synthetic::probe_faults())
    texts.push_back(to_json(known.make().answers).dump());
  for (unsigned round = 0; round < 3000; ++round) {
    Random random(round);
    std::string text = texts[round % texts.size()];
    for (std::size_t i = 0; i <= below(random, 6); ++i) {
      const std::size_t at = below(random, text.size());
      if (below(random, 3) == 0)
        text.erase(at, below(random, 20));
      else
        text[at] = "{}[]\",:0e-nt\\x\xff"[below(random, 15)];
      if (text.empty()) text = "0";
    }
    SCOPED_TRACE(text);
    EXPECT_NO_THROW(answers_from_json(nlohmann::json::parse(text, nullptr, false)));
  }
  EXPECT_THROW(parse_bounded(std::string(1 << 20, '[')), std::exception);
}

TEST(LargeMachine, is_read_and_diagnosed_in_a_time_that_is_printed) {
  const TestFolder folder("large");
  const synthetic::Machine machine = synthetic::large();
  machine.write(folder.path());
  const auto start = Clock::now();
  const Facts facts = facts_in(folder.path(), machine.answers);
  const double reading = std::chrono::duration<double>(Clock::now() - start).count();
  const std::vector<Finding> findings = run_checks(facts, select_checks({}));
  EXPECT_EQ(facts.machine.gpus.size(), 16U);
  EXPECT_EQ(facts.machine.nics.size(), 16U);
  EXPECT_FALSE(findings.empty());
  std::printf("16 GPUs and 16 NICs: read in %.2f s, with all checks %.2f s\n", reading,
              std::chrono::duration<double>(Clock::now() - start).count());
}

}  // namespace
}  // namespace gdrbench::doctor
