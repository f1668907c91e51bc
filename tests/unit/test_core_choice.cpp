#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "measure/core_binding.hpp"
#include "topology/cores.hpp"

namespace gdrbench::measure {
namespace {

using testing::HasSubstr;
using topology::allowed_cores;
using topology::ThreadBinding;

// Two sockets of eight cores; NIC and GPU at the second.
CoreQuestion question() {
  return {.nic = "mlx5_0",
          .nic_cores = "8-15",
          .gpu = "GPU 1",
          .gpu_cores = "8-15",
          .machine_cores = "0-15",
          .allowed_cores = "0-15"};
}

void expect_bound(const CoreQuestion& asked, const std::string& cores, const std::string& why) {
  const CoreChoice choice = choose_cores(asked);
  EXPECT_TRUE(choice.bound) << choice.why;
  EXPECT_EQ(choice.cores, cores);
  EXPECT_EQ(choice.why, why);
}

void expect_not_bound(const CoreQuestion& asked, const std::string& why) {
  const CoreChoice choice = choose_cores(asked);
  EXPECT_FALSE(choice.bound) << choice.why;
  EXPECT_EQ(choice.cores, asked.allowed_cores);
  EXPECT_THAT(choice.why, HasSubstr("not bound: " + why));
}

TEST(CoreChoice, is_next_to_nic_and_gpu) {
  expect_bound(question(), "8-15", "next to mlx5_0 and GPU 1");
}

TEST(CoreChoice, is_what_is_next_to_both_of_them) {
  CoreQuestion asked = question();
  asked.gpu_cores = "4-11";
  expect_bound(asked, "8-11", "next to mlx5_0 and GPU 1");
}

TEST(CoreChoice, is_next_to_the_nic_where_the_gpu_is_elsewhere) {
  CoreQuestion asked = question();
  asked.gpu_cores = "0-7";
  expect_bound(asked, "8-15", "next to mlx5_0, not to GPU 1");
}

TEST(CoreChoice, is_next_to_the_one_that_has_a_place) {
  CoreQuestion asked = question();
  asked.gpu = asked.gpu_cores = "";
  expect_bound(asked, "8-15", "next to mlx5_0");
  asked = question();
  asked.nic_cores = "";
  asked.gpu_cores = "0-7";
  expect_bound(asked, "0-7", "next to GPU 1");
}

TEST(CoreChoice, keeps_what_the_user_has_restricted) {
  CoreQuestion asked = question();
  asked.allowed_cores = "0-11";
  expect_not_bound(asked, "this process was given cores 0-11 before");
}

TEST(CoreChoice, is_none_when_told_so) {
  CoreQuestion asked = question();
  asked.bind = BindBy::none;
  expect_not_bound(asked, "--bind none");
}

TEST(CoreChoice, is_none_without_a_place) {
  CoreQuestion asked = question();
  asked.nic = "softverbs0";
  asked.nic_cores = asked.gpu = asked.gpu_cores = "";
  expect_not_bound(asked, "softverbs0 has no place on the PCI buses");
  asked.nic = "";
  expect_not_bound(asked, "there is no NIC or GPU to be next to");
}

TEST(CoreChoice, is_none_where_all_cores_are_as_near) {
  CoreQuestion asked = question();
  asked.nic_cores = asked.gpu_cores = "0-15";
  expect_not_bound(asked, "all cores are equally near");
}

TEST(CoreChoice, is_none_where_too_few_cores_are_near) {
  CoreQuestion asked = question();
  asked.nic_cores = "15";
  expect_not_bound(asked, "1 of this process's cores is next to mlx5_0 and GPU 1");
  asked.nic_cores = "32-39";
  expect_not_bound(asked, "0 of this process's cores are next to mlx5_0, not to GPU 1");
}

TEST(CoreChoice, is_none_where_the_machine_tells_nothing) {
  CoreQuestion asked = question();
  asked.machine_cores = "";
  expect_not_bound(asked, "the cores of this machine are not known");
}

topology::PciFunction at(const std::string& address, const std::string& cores) {
  topology::PciFunction made;
  made.address = address;
  made.cores = cores;
  return made;
}

TEST(CoreQuestion, takes_the_places_of_the_devices_of_a_case) {
  topology::Machine machine;
  machine.cores = "0-15";
  machine.nics = {{at("0000:1c:00.0", "0-7"), {"mlx5_0"}, {}, {}},
                  {at("0000:bc:00.0", "8-15"), {"mlx5_1"}, {}, {}}};
  machine.gpus = {{at("0000:1b:00.0", "0-7")}, {at("0000:bb:00.0", "8-15")}};
  Case c;
  c.memory = MemoryKind::cuda;
  c.gpu = 3;  // CUDA's number, whatever the address
  c.verbs.device = "mlx5_1";
  CoreQuestion asked = core_question(c, machine, "0000:bb:00.0", "0-15");
  EXPECT_EQ(asked.nic_cores, "8-15");
  EXPECT_EQ(asked.gpu_cores, "8-15");
  expect_bound(asked, "8-15", "next to mlx5_1 and GPU 3");
  c.memory = MemoryKind::host;
  c.verbs.device = "mlx5_0";
  expect_bound(core_question(c, machine, "", "0-15"), "0-7", "next to mlx5_0");
  c.verbs.device = "rxe0";
  expect_not_bound(core_question(c, machine, "", "0-15"), "rxe0 has no place on the PCI buses");
  topology::RdmaPort port;
  port.device = "rxe0";
  port.netdev = "veth0";
  machine.software_nics = {{"rxe0", "soft-roce", {port}}};
  expect_not_bound(core_question(c, machine, "", "0-15"), "rxe0 has no place on the PCI buses");
  machine.nics.back().netdevs = {"eth0", "veth0"};
  expect_bound(core_question(c, machine, "", "0-15"), machine.nics.back().pci.cores, "next to rxe0");
}

class Binding : public testing::Test {
 protected:
  void SetUp() override {
    if (topology::count_cores(all_) < 2) GTEST_SKIP() << "this process has one core";
    const std::string first = all_.substr(0, all_.find_first_of(",-"));
    one_ = first;
    hwloc_bitmap_t rest = topology::core_bitmap(all_).release();
    hwloc_bitmap_clr(rest, static_cast<unsigned>(std::stoul(first)));
    other_ = topology::core_list(rest);
    hwloc_bitmap_free(rest);
  }
  // Of a thread that is started now.
  static std::string cores_now() {
    std::string cores;
    std::thread([&] { cores = cores_of_this_thread(); }).join();
    return cores;
  }
  static std::string cores_of_this_thread() {
    cpu_set_t set;
    CPU_ZERO(&set);
    EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    const topology::CoreBitmap cores = topology::core_bitmap("");
    for (unsigned core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) hwloc_bitmap_set(cores.get(), core);
    return topology::core_list(cores.get());
  }
  const std::string all_ = allowed_cores();
  std::string one_, other_;
};

TEST_F(Binding, holds_for_threads_that_are_there_and_that_come_and_ends) {
  std::promise<void> bound, seen;
  std::string before, while_bound, after;
  std::promise<void> looked, released;
  std::thread there([&] {
    before = cores_of_this_thread();
    looked.set_value();
    bound.get_future().wait();
    while_bound = cores_of_this_thread();
    seen.set_value();
    released.get_future().wait();
    after = cores_of_this_thread();
  });
  looked.get_future().wait();
  {
    const ThreadBinding binding(one_);
    EXPECT_EQ(cores_of_this_thread(), one_);
    EXPECT_EQ(cores_now(), one_);
    EXPECT_EQ(allowed_cores(), all_) << "the user's, not our own";
    bound.set_value();
    seen.get_future().wait();
  }
  released.set_value();
  there.join();
  EXPECT_EQ(before, all_);
  EXPECT_EQ(while_bound, one_);
  EXPECT_EQ(after, all_);
  EXPECT_EQ(cores_of_this_thread(), all_);
}

TEST_F(Binding, of_several_is_the_one_renewed_last_until_the_last_is_gone) {
  auto first = std::make_unique<ThreadBinding>(one_);
  auto second = std::make_unique<ThreadBinding>(other_);
  EXPECT_EQ(cores_of_this_thread(), other_);
  first->renew();
  EXPECT_EQ(cores_of_this_thread(), one_);
  second->renew();
  first.reset();
  EXPECT_EQ(cores_of_this_thread(), other_);
  second.reset();
  EXPECT_EQ(cores_of_this_thread(), all_);
}

TEST_F(Binding, leaves_a_thread_that_was_bound_to_other_cores) {
  std::promise<void> ready, done;
  std::string cores;
  std::thread own([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(std::stoul(one_), &set);
    EXPECT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
    ready.set_value();
    done.get_future().wait();
    cores = cores_of_this_thread();
  });
  ready.get_future().wait();
  { const ThreadBinding binding(other_); }
  done.set_value();
  own.join();
  EXPECT_EQ(cores, one_);
}

TEST_F(Binding, to_cores_that_are_not_there_is_refused_and_changes_nothing) {
  EXPECT_THROW(ThreadBinding("4000-4001"), std::exception);
  EXPECT_EQ(cores_of_this_thread(), all_);
  EXPECT_EQ(allowed_cores(), all_);
}

}  // namespace
}  // namespace gdrbench::measure
