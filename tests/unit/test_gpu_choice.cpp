#include <gtest/gtest.h>

#include "benchmarks/device_choice.hpp"

namespace gdrbench::benchmarks {
namespace {

using nlohmann::json;
using enum topology::PciDistance;
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
  const json node = {{"gpus", {{{"index", 0}}, {{"index", 1}}}},
                     {"rdma",
                      {{"devices",
                        {{{"name", "mlx5_0"}, {"gpu_distances", {"PIX", "SYS"}}},
                         {{"name", "mlx5_1"}, {"gpu_distances", {"SYS", "PXB"}}}}}}}};
  EXPECT_EQ(gpu_distances(node, "mlx5_1"), (Distances{sys, pxb}));
  EXPECT_EQ(gpu_distances(node, "mlx5_2"), (Distances{unknown, unknown}));
  EXPECT_EQ(gpu_distances(node, ""), (Distances{unknown, unknown}));
}

TEST(GpuDistances, survive_an_end_that_tells_nothing_or_nonsense) {
  EXPECT_TRUE(gpu_distances(json::object(), "mlx5_0").empty());
  EXPECT_TRUE(gpu_distances({{"gpus", 3}}, "mlx5_0").empty());
  const json odd = {
      {"gpus", json::array({1, 2})},
      {"rdma", {{"devices", json::array({7, {{"name", "a"}, {"gpu_distances", {9, "PIX", "PHB"}}}})}}}};
  EXPECT_EQ(gpu_distances(odd, "a"), (Distances{unknown, pix}));
}

}  // namespace
}  // namespace gdrbench::benchmarks
