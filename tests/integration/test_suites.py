#!/usr/bin/python3
"""The suites in which GPUs take part. Without a GPU the CPU sees data arrive in its place, and nothing works beside a
transfer, which is said; with one, kernels of both ends share it."""

import glob
import json
import unittest

from harness import DONE, SOFTVERBS, UNAVAILABLE, TestCase, check_result, main
from matrix_case import DIRECTIONS, ONE_RUN, MatrixCase

HAS_GPU = glob.glob("/dev/nvidia[0-9]*")
HOST = ["--memory", "host"]
SIZES = [1, 9, 1025, 65537, (8 << 20) + 1]  # odd tails, several chunks and segments


class Visible(MatrixCase):
    PATHS = ["tcp", "tcp_wire"]
    OPS = ["send", "write", "write_imm"]

    def see(self, *flags, **how):
        found = self.measure("visible", *HOST, *flags, ops=self.OPS, completion=["poll"], **how)
        for case in found.values():
            self.assertEqual("visible", case["suite"])
            self.assertEqual([{"kind": "cpu"}] * 2, [proof["observer"] for proof in case["proof"]])
            self.assertGreater(case["repetitions"][0]["latency_us"]["min"], 0)

    def test_every_op_and_size(self):
        self.see(sizes=SIZES)

    def test_plain_and_pageable_staging(self):
        for staging in ("plain", "pageable"):
            with self.subTest(staging):
                self.see("--staging", staging, sizes=[3, 65537], paths=[p for p in self.PATHS if "wire" not in p])

    def test_its_samples_are_written(self):
        server, samples = self.serve(*self.FLAGS), self.folder / "samples.csv"
        outcome = self.run_program("visible", server.address, "--paths", self.PATHS[0], "--sizes", 8, *HOST, *self.FLAGS,
                                   *ONE_RUN, "--samples", samples)
        self.assert_ends(outcome, DONE)
        self.assertRegex(outcome.out, rf"(?m)^visible +size +min\b.*\n{self.PATHS[0]} +send +8 B ")
        self.assertRegex(samples.read_text().splitlines()[1], rf"^visible,{self.PATHS[0]},send,host,poll,8,0,0,[0-9.e+-]+$")

    def test_what_cannot_be_seen_is_skipped_with_the_reason(self):
        for flags, reason in ((["--op", "read"], "the visible suite has no read.*use --op send, write, write_imm"),
                              (["--completion", "event"], "no event to wait for")):
            with self.subTest(flags):
                self.assert_ends(self.run_program("visible", "--loopback", "--paths", self.PATHS[0], *HOST, *self.FLAGS,
                                                  *flags, *ONE_RUN), UNAVAILABLE, "none of the paths", reason)

    def test_an_op_that_cannot_be_seen_is_skipped_beside_one_that_can(self):
        outcome = self.run_program("visible", "--loopback", "--paths", self.PATHS[0], "--op", "read,write", "--sizes", 8,
                                   *HOST, *self.FLAGS, *ONE_RUN)
        self.assert_ends(outcome, DONE)
        self.assertRegex(outcome.out, rf"(?m)^{self.PATHS[0]} +write +8 B ")
        self.assertIn("the visible suite has no read", outcome.out)


@unittest.skipUnless(SOFTVERBS, "this build has no softverbs")
class VisibleOverSoftverbs(Visible):
    PATHS, FABRIC, FLAGS = ["rdma", "gdr", "rdma_wire"], "softverbs", ["--fabric", "softverbs"]

    def test_nothing_posted_inline(self):
        self.see("--inline", 0, sizes=[1, 64])

    def test_a_byte_that_is_corrupted_on_the_way_fails_the_run(self):
        outcome = self.run_program("visible", "--loopback", *HOST, *self.FLAGS, "--paths", "gdr", "--op", "send",
                                   "--sizes", "64k", *ONE_RUN, faults="corrupt=1-")
        self.assertNotEqual(DONE, outcome.status, outcome.out)


class Overlap(TestCase):
    def overlap(self, *flags):
        out = self.folder / "result.json"
        outcome = self.run_program("overlap", "--loopback", "--paths", "tcp,tcp_wire", "--sizes", "64k", "--footprint",
                                   "1M", *flags, *ONE_RUN, "--out", out)
        self.assert_ends(outcome, DONE)
        self.assertEqual("", check_result(out))
        return outcome, json.loads(out.read_text())["gdrbench"]

    def test_without_gpu_memory_the_transfer_alone_is_measured_and_the_reason_told(self):
        outcome, own = self.overlap(*HOST, "--direction", ",".join(DIRECTIONS))
        self.assertEqual({(path, way, "none") for path in ("tcp", "tcp_wire") for way in DIRECTIONS},
                         {(case["path"], case["direction"], case["load"]) for case in own["cases"]})
        for case in own["cases"]:
            self.assertIsNone(case["repetitions"][0]["load"])
            self.assertGreater(case["repetitions"][0]["bytes_per_second"], 0)
        self.assertRegex(outcome.out, r"(?m)^overlap +size +rate alone$")
        self.assertEqual([], own["skipped"], "every path ran")
        self.assertNotRegex(outcome.out, r"(?m)^[a-z_, ]*tcp[a-z_, ]* skipped: ")
        self.assertRegex(outcome.out, r"(?m)^load skipped beside tcp: ")
        reasons = {skipped["path"]: skipped["reason"] for skipped in own["load_skipped"]}
        self.assertIn("overlap needs GPU memory on both ends", reasons["tcp"])
        self.assertIn("its payload is in host memory", reasons["tcp_wire"])

    def test_that_no_load_was_asked_for_needs_no_reason(self):
        _, own = self.overlap(*HOST, "--load", "none")
        self.assertEqual([], own["skipped"])
        self.assertNotIn("load_skipped", own)
        self.assertEqual(4, len(own["cases"]))

    def test_a_path_that_must_run_with_a_load_is_an_error_where_it_cannot(self):
        outcome = self.run_program("overlap", "--loopback", "--paths", "tcp", "--require", "tcp", "--sizes", "64k",
                                   "--direction", "forward", *HOST, *ONE_RUN)
        self.assert_ends(outcome, UNAVAILABLE, "--require tcp", "needs GPU memory")
        self.assertRegex(outcome.out, r"tcp +send forward +64 KiB")

    def test_host_memory_is_taken_without_being_asked_where_there_is_no_gpu(self):
        if HAS_GPU:
            self.skipTest("this machine has a GPU")
        _, own = self.overlap()
        self.assertEqual({"host"}, {case["memory"] for case in own["cases"]})


@unittest.skipUnless(HAS_GPU, "this machine has no GPU")
class OnAGpu(MatrixCase):
    """Both ends on one GPU: that it works, whatever the figures."""

    PATHS, FABRIC, FLAGS = ["tcp", "rdma", "gdr"], "softverbs", ["--fabric", "softverbs"]

    def test_kernels_see_every_op_and_size(self):
        for memory in ("cuda", "cuda_vmm"):
            with self.subTest(memory):
                found = self.measure("visible", "--memory", memory, sizes=[1, 1025, 1 << 20],
                                     ops=["send", "write", "write_imm"], completion=["poll"])
                for case in found.values():
                    self.assertEqual(["gpu kernel"] * 2, [proof["observer"]["kind"] for proof in case["proof"]])

    def test_a_transfer_runs_beside_each_load(self):
        server, out = self.serve(*self.FLAGS), self.folder / "result.json"
        outcome = self.run_program("overlap", server.address, "--paths", ",".join(self.PATHS), "--sizes", "1M",
                                   "--direction", "forward", "--memory", "cuda", *self.FLAGS, *ONE_RUN, "--out", out,
                                   seconds=240)
        self.assert_ends(outcome, DONE)
        self.assertEqual("", check_result(out))
        own = json.loads(out.read_text())["gdrbench"]
        self.assertEqual({(path, load) for path in self.PATHS for load in ("none", "compute", "memory")},
                         {(case["path"], case["load"]) for case in own["cases"]})
        for case in own["cases"]:
            for rank, work in enumerate(case["repetitions"][0]["load"] or []):
                self.assertGreater(work["alone_units_per_second"], 0, (case["path"], rank))
        self.assertIn("on one GPU", " ".join(outcome.out.split()))


if __name__ == "__main__":
    main()
