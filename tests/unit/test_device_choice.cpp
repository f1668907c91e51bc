#include <fmt/format.h>
#include <gtest/gtest.h>

#include "benchmarks/device_choice.hpp"
#include "benchmarks/discovery.hpp"
#include "gdrbench/error.hpp"

namespace gdrbench::benchmarks {
namespace {

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

RdmaDeviceInfo told(const std::string& name, std::vector<topology::PciDistance> distances = {}) {
  return {.name = name,
          .link_layer = "Ethernet",
          .link_bytes_per_second = 5e10,
          .gpu_distances = std::move(distances)};
}

EndInfo end_with(std::vector<RdmaDeviceInfo> devices, int gpus = 2) {
  EndInfo end{.host = "node-a"};
  end.cuda.count = gpus;
  for (int index = 0; index < gpus; ++index) end.gpus.push_back({.index = index});
  if (gpus == 0) end.cuda.unavailable = "no CUDA driver";
  end.rdma.devices = std::move(devices);
  return end;
}

const EndInfo end = end_with({told("mlx5_0", {phb, pix}), told("mlx5_1")});

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

using Distances = std::vector<topology::PciDistance>;

void expect(const GpuQuestion& question, int gpu, int remote_gpu) {
  const GpuChoice choice = choose_gpus(question);
  EXPECT_EQ(choice.gpu, gpu);
  EXPECT_EQ(choice.remote_gpu, remote_gpu);
}

TEST(GpuChoice, takes_the_nearest_of_each_end) {
  expect({.here = {sys, phb, pix, pxb}, .there = {node, sys}, .asked = {}, .remote_asked = {}}, 2, 0);
}

TEST(GpuChoice, takes_the_lowest_of_equals) {
  expect({.here = {sys, pix, pix}, .there = {unknown, unknown}, .asked = {}, .remote_asked = {}}, 1, 0);
}

TEST(GpuChoice, prefers_any_known_distance_to_an_unknown_one) {
  expect({.here = {unknown, sys}, .there = {unknown}, .asked = {}, .remote_asked = {}}, 1, 0);
}

TEST(GpuChoice, takes_two_gpus_of_one_node) {
  const Distances both = {pix, pix, sys};
  expect({.here = both, .there = both, .asked = {}, .remote_asked = {}, .one_node = true}, 0, 1);
  expect({.here = {sys, pix}, .there = {sys, pix}, .asked = {}, .remote_asked = {}, .one_node = true}, 1, 0);
}

TEST(GpuChoice, avoids_the_gpu_that_was_asked_for_at_the_other_end) {
  const Distances both = {pix, sys, node};
  expect({.here = both, .there = both, .asked = {}, .remote_asked = 0, .one_node = true}, 2, 0);
  expect({.here = both, .there = both, .asked = 1, .remote_asked = {}, .one_node = true}, 1, 0);
}

TEST(GpuChoice, takes_what_was_asked_for_even_where_both_are_the_same) {
  expect({.here = {pix, sys}, .there = {pix, sys}, .asked = 1, .remote_asked = 1, .one_node = true}, 1, 1);
}

TEST(GpuChoice, takes_the_only_gpu_for_both_ends_and_0_without_any) {
  expect({.here = {pix}, .there = {pix}, .asked = {}, .remote_asked = {}, .one_node = true}, 0, 0);
  expect({.here = {}, .there = {}, .asked = {}, .remote_asked = {}, .one_node = true}, 0, 0);
}

TEST(GpuDistances, are_those_of_the_chosen_device) {
  const EndInfo node = end_with({told("mlx5_0", {pix, sys}), told("mlx5_1", {sys, pxb})});
  EXPECT_EQ(gpu_distances(node, "mlx5_1"), (Distances{sys, pxb}));
  EXPECT_EQ(gpu_distances(node, "mlx5_2"), (Distances{unknown, unknown}));
  EXPECT_EQ(gpu_distances(node, ""), (Distances{unknown, unknown}));
}

TEST(GpuDistances, of_an_end_that_tells_too_few_or_too_many_are_as_many_as_its_gpus) {
  EXPECT_TRUE(gpu_distances(EndInfo{}, "mlx5_0").empty());
  EXPECT_EQ(gpu_distances(end_with({told("a", {pix})}), "a"), (Distances{pix, unknown}));
  EXPECT_EQ(gpu_distances(end_with({told("a", {pix, phb, sys})}), "a"), (Distances{pix, phb}));
}

std::vector<std::string> names_of(const std::vector<MeasureOptions>& pairs) {
  std::vector<std::string> names;
  for (const MeasureOptions& pair : pairs)
    names.push_back(fmt::format("{}:{} {}:{}", pair.device, pair.gpu.value_or(-1), pair.remote_device,
                                pair.remote_gpu.value_or(-1)));
  return names;
}
using Names = std::vector<std::string>;

TEST(Pairs, are_every_gpu_with_its_nearest_device_at_each_end) {
  const EndInfo there = end_with({told("mlx5_4", {sys, pix}), told("mlx5_5", {pix, sys})});
  const EndInfo here = end_with({told("mlx5_0", {pix, sys}), told("mlx5_1", {sys, pix})});
  MeasureOptions options;
  options.all_pairs = true;
  EXPECT_EQ(names_of(options_by_pair(here, there, options)),
            (Names{"mlx5_0:0 mlx5_5:0", "mlx5_1:1 mlx5_4:1"}));
}

TEST(Pairs, of_gpus_equally_near_to_several_devices_share_none) {
  const EndInfo node = end_with({told("mlx5_0", {pix, pix}), told("mlx5_1", {pix, pix})});
  MeasureOptions options;
  options.all_pairs = true;
  EXPECT_EQ(names_of(options_by_pair(node, node, options)),
            (Names{"mlx5_0:0 mlx5_0:0", "mlx5_1:1 mlx5_1:1"}));
}

TEST(Pairs, that_are_named_have_the_same_names_at_the_other_end_unless_told) {
  const EndInfo node = end_with({told("mlx5_0", {pix, sys}), told("mlx5_1", {sys, pix})});
  MeasureOptions options;
  options.pairs = {{"mlx5_1", 0}, {"mlx5_0", 1}};
  EXPECT_EQ(names_of(options_by_pair(node, node, options)),
            (Names{"mlx5_1:0 mlx5_1:0", "mlx5_0:1 mlx5_0:1"}));
  options.remote_pairs = {{"mlx5_0", 0}, {"mlx5_1", 1}};
  EXPECT_EQ(names_of(options_by_pair(node, node, options)),
            (Names{"mlx5_1:0 mlx5_0:0", "mlx5_0:1 mlx5_1:1"}));
}

TEST(Pairs, without_a_gpu_are_the_devices) {
  const EndInfo node = end_with({told("rxe0"), told("rxe1")}, 0);
  MeasureOptions options;
  options.all_pairs = true;
  EXPECT_EQ(names_of(options_by_pair(node, node, options)), (Names{"rxe0:-1 rxe0:-1", "rxe1:-1 rxe1:-1"}));
}

std::string refusal(const EndInfo& here, const EndInfo& there, const MeasureOptions& options) {
  try {
    options_by_pair(here, there, options);
  } catch (const Unavailable& unavailable) {
    return unavailable.what();
  }
  return "accepted";
}

TEST(Pairs, that_cannot_be_had_are_refused_by_name) {
  const EndInfo two = end_with({told("mlx5_0", {pix, sys}), told("mlx5_1", {sys, pix})});
  const EndInfo one = end_with({told("mlx5_0", {pix})}, 1);
  MeasureOptions options;
  options.all_pairs = true;
  EXPECT_NE(refusal(two, one, options).find("node-a has 2 pairs of RDMA device and GPU, node-a has 1"),
            std::string::npos);
  EXPECT_NE(refusal(end_with({}), two, options).find("--pairs auto: on node-a"), std::string::npos);
  options = {};
  options.pairs = {{"mlx5_7", 0}};
  EXPECT_NE(refusal(two, two, options).find("no usable RDMA device named 'mlx5_7'"), std::string::npos);
  options.pairs = {{"mlx5_0", 2}};
  EXPECT_NE(refusal(two, two, options).find("--pairs mlx5_0:gpu2: node-a has 2 GPUs"), std::string::npos);
}

}  // namespace
}  // namespace gdrbench::benchmarks
