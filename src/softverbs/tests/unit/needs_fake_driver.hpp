#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "fake_cuda.hpp"
#include "memory/cuda_driver.hpp"
#include "memory/memory.hpp"

namespace gdrbench::softverbs {

inline const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// The fake driver, loaded as a program loads the real one. Stays loaded, as that does.
struct FakeDriver {
  struct Symbol {
    void* address;
    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };
  Symbol entry(const char* name) const {
    void* found = dlsym(library, name);
    if (found == nullptr) throw std::runtime_error(std::string("the fake driver lacks ") + name);
    return {found};
  }

  void* library;
  decltype(&fake::fake_cuda_allocate) allocate = entry("fake_cuda_allocate");
  decltype(&fake::fake_cuda_free) free = entry("fake_cuda_free");
  decltype(&fake::fake_cuda_bytes) bytes = entry("fake_cuda_bytes");
  decltype(&fake::fake_cuda_counters) counters = entry("fake_cuda_counters");
  decltype(&fake::fake_cuda_fail_copy) fail_copy = entry("fake_cuda_fail_copy");
  decltype(&fake::fake_cuda_refuse_pinned) refuse_pinned = entry("fake_cuda_refuse_pinned");
  decltype(&fake::fake_cuda_make_old) make_old = entry("fake_cuda_make_old");
  decltype(&fake::fake_cuda_deinitialize) deinitialize = entry("fake_cuda_deinitialize");
  decltype(&fake::fake_cuda_enter_program_context) enter_program_context =
      entry("fake_cuda_enter_program_context");
  decltype(&fake::fake_cuda_in_program_context) in_program_context = entry("fake_cuda_in_program_context");
  decltype(&fake::fake_cuda_destroy_context) destroy_context = entry("fake_cuda_destroy_context");
  decltype(&fake::fake_cuda_reset) reset = entry("fake_cuda_reset");
};

/// Skips the tests of a suite, with the reason, where there is no fake driver.
class NeedsFakeDriver : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* path = std::getenv("SOFTVERBS_FAKE_CUDA");
    if (path == nullptr || driver_ != nullptr) return;
    ASSERT_EQ(cuda::loaded_driver(), nullptr) << "no program has loaded one yet";
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    driver_ = new FakeDriver{library};
    ASSERT_NE(cuda::loaded_driver(), nullptr) << "it has now";
  }
  void SetUp() override {
    if (std::getenv("SOFTVERBS_FAKE_CUDA") == nullptr)
      GTEST_SKIP() << "SOFTVERBS_FAKE_CUDA does not name the fake libcuda.so.1";
    ASSERT_NE(driver_, nullptr);
    driver_->reset();
    driver_->enter_program_context();
  }
  void TearDown() override {
    if (driver_ == nullptr) return;
    EXPECT_TRUE(driver_->in_program_context()) << "the thread's own context changed";
    EXPECT_EQ(counters().captures_endangered, 0);
    driver_->deinitialize(false);
  }

  static fake::Counters counters() {
    fake::Counters counters;
    driver_->counters(&counters);
    return counters;
  }
  static std::uint64_t allocate(std::size_t bytes, fake::Kind kind = fake::Kind::device) {
    const std::uint64_t address = driver_->allocate(bytes, kind);
    EXPECT_NE(address, 0U);
    return address;
  }
  static std::shared_ptr<Memory> resolved(std::uint64_t address, std::uint64_t length) {
    const auto [memory, error] = resolve_memory(address, length, true);
    EXPECT_NE(memory, nullptr) << strerrorname_np(error);
    return memory;
  }
  static int refusal(std::uint64_t address, std::uint64_t length) {
    const auto [memory, error] = resolve_memory(address, length, true);
    EXPECT_EQ(memory, nullptr);
    return error;
  }

  static inline FakeDriver* driver_ = nullptr;
};

}  // namespace gdrbench::softverbs
