#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/Version.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "gdrbench/version.hpp"

namespace gdrbench {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string version_of(std::string_view library) {
  const auto found = std::ranges::find(build_info.libraries, library,
                                       [](const LibraryVersion& v) { return std::string_view(v.name); });
  return found == build_info.libraries.end() ? "not listed" : found->version;
}

TEST(BuildInfo, versions_of_libraries_are_those_of_the_headers_compiled) {
  EXPECT_EQ(version_of("fmt"),
            fmt::format("{}.{}.{}", FMT_VERSION / 10'000, FMT_VERSION / 100 % 100, FMT_VERSION % 100));
  EXPECT_EQ(version_of("nlohmann_json"),
            fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                        NLOHMANN_JSON_VERSION_PATCH));
  EXPECT_EQ(version_of("CLI11"), CLI11_VERSION);
}

TEST(BuildInfo, every_library_has_a_version) {
  for (const LibraryVersion& library : build_info.libraries) {
    EXPECT_THAT(library.version, testing::MatchesRegex("[0-9]+[0-9.a-z]*")) << library.name;
  }
  EXPECT_GE(build_info.libraries.size(), 10U);
}

TEST(BuildInfo, names_the_compiler_and_whether_it_optimised) {
#ifdef __clang__
  EXPECT_THAT(build_info.compiler, HasSubstr("Clang " + std::to_string(__clang_major__) + "."));
#else
  EXPECT_THAT(build_info.compiler, StartsWith("GNU " + std::to_string(__GNUC__) + "."));
#endif
#ifdef __OPTIMIZE__
  EXPECT_TRUE(build_info.optimised);
  EXPECT_THAT(build_info.flags,
              AnyOf(HasSubstr("-O1"), HasSubstr("-O2"), HasSubstr("-O3"), HasSubstr("-Os")));
#else
  EXPECT_FALSE(build_info.optimised);
#endif
}

TEST(BuildInfo, names_the_build_type) {
  EXPECT_STREQ(build_info.build_type, GDRBENCH_BUILD_TYPE);
}

}  // namespace
}  // namespace gdrbench
