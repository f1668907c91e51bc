#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "gdrbench/error.hpp"
#include "memory/gdrcopy.hpp"

namespace gdrbench::memory {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::byte* address, std::uint64_t length) {
  try {
    const GdrMapping mapping(address, length);
    return "";
  } catch (const Unavailable& why) {
    return why.what();
  }
}

TEST(Gdrcopy, WithoutTheLibraryIsUnavailableByName) {
  if (void* const installed = dlopen("libgdrapi.so.2", RTLD_NOW)) {
    dlclose(installed);
    GTEST_SKIP() << "GDRCopy is installed";
  }
  EXPECT_THAT(gdrcopy_unavailable(), HasSubstr("libgdrapi.so.2 is not installed"));
}

/// With a library that takes any memory for that of a GPU.
class FakeGdrcopy : public ::testing::Test {
 protected:
  void SetUp() override {
    // Loaded already, it is what the next dlopen of its soname finds.
    library_ = dlopen(GDRBENCH_FAKE_GDRAPI, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  void TearDown() override {
    unsetenv("FAKE_GDR_NO_MODULE");
    unsetenv("FAKE_GDR_REFUSE");
    dlclose(library_);
  }
  int in_use() const { return reinterpret_cast<int (*)()>(dlsym(library_, "fake_gdr_in_use"))(); }
  void* library_ = nullptr;
};

TEST_F(FakeGdrcopy, CopiesBothWaysAtAnyPlaceOfTheRange) {
  // Whole GPU pages around it, since those are what is mapped.
  std::vector<std::byte> memory(500'000);
  std::byte* const range = memory.data() + 100'077;
  {
    const GdrMapping mapping(range, 200'000);
    EXPECT_EQ(in_use(), 2);
    const std::vector<std::byte> from(1001, std::byte{42});
    mapping.write(range + 150'000, from.data(), from.size());
    EXPECT_EQ(range[149'999], std::byte{0});
    EXPECT_EQ(range[150'000], std::byte{42});
    EXPECT_EQ(range[151'000], std::byte{42});
    EXPECT_EQ(range[151'001], std::byte{0});
    std::vector<std::byte> back(1001);
    mapping.read(back.data(), range + 150'000, back.size());
    EXPECT_EQ(back, from);
  }
  EXPECT_EQ(in_use(), 0);
}

TEST_F(FakeGdrcopy, WithoutItsModuleSaysSo) {
  setenv("FAKE_GDR_NO_MODULE", "1", 1);
  EXPECT_THAT(gdrcopy_unavailable(), HasSubstr("gdrdrv"));
}

TEST_F(FakeGdrcopy, ThatCannotPinSaysWhatAndWhy) {
  setenv("FAKE_GDR_REFUSE", "1", 1);
  const std::vector<std::byte> memory(100);
  EXPECT_THAT(refusal(memory.data(), 100), HasSubstr("ENOMEM"));
  EXPECT_EQ(in_use(), 0);
}

}  // namespace
}  // namespace gdrbench::memory
