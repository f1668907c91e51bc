#include <gtest/gtest.h>

#include "benchmarks/device_choice.hpp"

namespace gdrbench::benchmarks {
namespace {

using nlohmann::json;
using enum topology::PciDistance;

Candidate device(const std::string& name, topology::PciDistance distance = unknown, double gigabits = 400) {
  return {
      .name = name, .link_layer = "Ethernet", .bytes_per_second = gigabits * 1e9 / 8, .distance = distance};
}

void expect(const std::vector<Candidate>& here, const std::vector<Candidate>& there, const std::string& own,
            const std::string& other, bool one_node = false) {
  const auto pair = choose_devices(here, there, one_node);
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->here.name, own);
  EXPECT_EQ(pair->there.name, other);
}

TEST(DeviceChoice, is_the_nearest_to_a_gpu_at_each_end) {
  expect({device("a", sys), device("b", pix), device("c", phb)}, {device("d", node), device("e", pxb)}, "b",
         "e");
}

TEST(DeviceChoice, is_the_fastest_of_those_that_are_as_near) {
  expect({device("a", pix, 100), device("b", pix, 200)},
         {device("c", unknown, 100), device("d", unknown, 400)}, "b", "d");
}

TEST(DeviceChoice, is_the_first_of_equals_and_at_the_other_end_the_one_of_the_same_name) {
  expect({device("b"), device("a")}, {device("a"), device("b")}, "b", "b");
  expect({device("b"), device("a")}, {device("d"), device("c")}, "b", "d");
}

TEST(DeviceChoice, is_no_worse_device_for_its_name) {
  expect({device("a", pix)}, {device("a", sys), device("b", pix)}, "a", "b");
}

TEST(DeviceChoice, is_one_device_for_both_ends_of_one_node) {
  expect({device("a", pix)}, {device("b", pix), device("a", sys)}, "a", "a", true);
}

TEST(DeviceChoice, is_hardware_before_software_however_near) {
  Candidate software = device("rxe0", pix, 1000);
  software.fabric = FabricKind::soft_roce;
  expect({software, device("mlx5_0", sys, 10)}, {software, device("mlx5_0", sys, 10)}, "mlx5_0", "mlx5_0");
  expect({software, device("mlx5_0", sys, 10)}, {software}, "rxe0", "rxe0");
}

TEST(DeviceChoice, is_none_where_fabrics_or_link_layers_differ) {
  Candidate infiniband = device("a");
  infiniband.link_layer = "InfiniBand";
  EXPECT_FALSE(choose_devices({infiniband}, {device("a")}, false));
  EXPECT_FALSE(choose_devices({}, {device("a")}, false));
}

const json end = {{"gpus", {{{"index", 0}}, {{"index", 1}}}},
                  {"rdma",
                   {{"devices",
                     {{{"name", "mlx5_0"}, {"gpu_distances", {"PHB", "PIX"}}},
                      {{"name", "mlx5_1"}, {"gpu_distances", {}}}}}}}};

json told(const std::string& name) {
  return {
      {"name", name}, {"fabric", "hardware"}, {"link_layer", "Ethernet"}, {"link_bytes_per_second", 5e10}};
}

TEST(Candidates, have_their_nearest_gpu_or_the_one_asked_for) {
  const std::vector<Candidate> any = candidates(end, {told("mlx5_0"), told("mlx5_1")}, {}, true);
  EXPECT_EQ(any[0].gpu, 1);
  EXPECT_EQ(any[0].distance, pix);
  EXPECT_EQ(any[1].distance, unknown);
  EXPECT_EQ(candidates(end, {told("mlx5_0")}, 0, true)[0].distance, phb);
}

TEST(Candidates, have_no_distance_where_the_payload_is_in_host_memory) {
  const Candidate one = candidates(end, {told("mlx5_0")}, {}, false)[0];
  EXPECT_EQ(one.distance, unknown);
  EXPECT_FALSE(one.gpu);
}

TEST(DeviceChoice, is_told_where_there_was_one) {
  const Candidate one = candidates(end, {told("mlx5_0")}, {}, true)[0];
  EXPECT_EQ(describe_choice(one, 4), "mlx5_0 of 4 devices: PIX to GPU 1, 400 Gb/s");
  EXPECT_EQ(describe_choice(one, 1), "");
  EXPECT_EQ(describe_choice(device("a"), 2), "a of 2 devices: 400 Gb/s");
}

}  // namespace
}  // namespace gdrbench::benchmarks
