"""What one node measures alone: registration, and p2p where there is no GPU."""

import json
import unittest

import harness
from harness import DONE, UNAVAILABLE, USAGE

BRIEF = ["--benchmark_repetitions=2", "--benchmark_min_time=0.001"]


class Registration(harness.TestCase):
    def measure(self, *arguments):
        file = self.folder / "result.json"
        outcome = self.run_program("registration", "--sizes", "4k,64k", "--out", file, *BRIEF, *arguments)
        self.assert_ends(outcome, DONE)
        self.assertEqual("", harness.check_result(file))
        return json.loads(file.read_text())["gdrbench"], outcome.out

    @unittest.skipUnless(harness.SOFTVERBS, "this build has no softverbs")
    def test_times_host_memory_on_the_software_nic(self):
        own, table = self.measure("--fabric", "softverbs")
        self.assertEqual("softverbs", own["fabric"]["kind"])
        self.assertTrue(own["functional"])
        self.assertIn("functional", table)
        host = [one for one in own["local"] if one["labels"] == {"memory": "host", "registration": "host"}]
        self.assertEqual({(what, size) for what in ("register", "deregister", "copy") for size in (4096, 65536)},
                         {(one["what"], one["size_bytes"]) for one in host})
        for one in own["local"]:
            self.assertEqual(2, len(one["repetitions"]))
            for repetition in one["repetitions"]:
                self.assertGreater(repetition["time_us"], 0)
        self.assertIn({"memory": "host", "registration": "host"}, [one["labels"] for one in own["local_crossovers"]])
        measured = {tuple(one["labels"].values()) for one in own["local"]}
        skipped = {tuple(one["what"].split()) for one in own["local_skipped"]}
        self.assertEqual(7, len(measured | skipped), "each kind is measured or has its reason")

    @unittest.skipUnless(harness.SOFTVERBS, "this build has no softverbs")
    def test_keeps_what_it_had_when_the_time_budget_is_over(self):
        file = self.folder / "result.json"
        outcome = self.run_program("registration", "--fabric", "softverbs", "--sizes", "16M,32M,64M", "--time-budget",
                                   0.001, "--out", file, "--benchmark_repetitions=1")
        self.assert_ends(outcome, DONE)
        own = json.loads(file.read_text())["gdrbench"]
        self.assertFalse(own["complete"])
        self.assertIn("time budget", own["incomplete_reason"])

    def test_names_the_fault_of_a_size(self):
        self.assert_ends(self.run_program("registration", "--sizes", "5Q"), USAGE, "5Q")

    def test_says_that_a_filter_matches_nothing(self):
        outcome = self.run_program("registration", "--sizes", "4k", *BRIEF, "--benchmark_filter=nothing_of_that_name")
        self.assert_ends(outcome, USAGE, "--benchmark_filter")

    def test_ends_unavailable_without_the_device_asked_for(self):
        outcome = self.run_program("registration", "--device", "mlx5_77", "--sizes", "4k", *BRIEF)
        if "cuda_pin skipped" not in outcome.out and outcome.status == DONE:
            self.skipTest("host memory can be pinned for a GPU here")
        self.assert_ends(outcome, UNAVAILABLE, "nothing can be registered here: no usable RDMA device named 'mlx5_77'")


class Peer(harness.TestCase):
    def test_runs_or_says_why_there_is_no_gpu(self):
        file = self.folder / "result.json"
        outcome = self.run_program("p2p", "--sizes", "64k", "--time-budget", 3, "--out", file, *BRIEF)
        if outcome.status == DONE:
            self.assertEqual("", harness.check_result(file))
            return
        self.assert_ends(outcome, UNAVAILABLE, "between the GPUs of this node: .+")
        self.assertFalse(file.exists())

    def test_is_skipped_with_its_reason_beside_other_paths(self):
        file = self.folder / "result.json"
        outcome = self.run_program("bandwidth", "--loopback", "--paths", "p2p,tcp", "--op", "write", "--memory", "host",
                                   "--sizes", "4k", "--out", file, *BRIEF)
        self.assert_ends(outcome, DONE)
        own = json.loads(file.read_text())["gdrbench"]
        self.assertEqual({"tcp"}, {case["path"] for case in own["cases"]})
        self.assertEqual(["p2p"], [one["path"] for one in own["skipped"]])
        self.assertIn("GPU to GPU", own["skipped"][0]["reason"])


if __name__ == "__main__":
    harness.main()
