#!/usr/bin/python3
"""All paths over the software NIC: every combination moves its data right and is labelled functional; a peer that
dies is named soon."""

import unittest

from harness import DONE, QUICK, SOFTVERBS, UNAVAILABLE, TestCase, main
from matrix_case import DIRECTIONS, EDGES, FEW, MatrixCase
from mid_run import MidRun

FABRIC = ["--fabric", "softverbs"]
BY_EVENTS = ["send", "write_imm", "read"]


@unittest.skipUnless(SOFTVERBS, "this build has no softverbs")
class Combinations(MatrixCase):
    PATHS, FABRIC, FLAGS = ["rdma", "gdr", "rdma_wire"], "softverbs", FABRIC

    def test_latency_of_every_op_and_size_polling(self):
        self.measure("latency", sizes=EDGES, completion=["poll"])

    def test_latency_of_every_op_and_size_by_events(self):
        self.measure("latency", sizes=EDGES)

    def test_bandwidth_of_every_op_size_and_direction(self):
        self.measure("bandwidth", sizes=EDGES, ops=BY_EVENTS, directions=DIRECTIONS)
        self.measure("bandwidth", sizes=EDGES, ops=["write"], directions=DIRECTIONS, completion=["poll"])

    def test_bandwidth_over_three_queue_pairs_polling_and_by_events(self):
        found = self.measure("bandwidth", "--queue-pairs", 3, sizes=FEW, directions=DIRECTIONS,
                             completion=["poll", "event"])
        self.assertEqual({3}, {case["queue_pairs"] for case in found.values()})

    def test_plain_and_pageable_staging(self):
        for staging in ("plain", "pageable"):
            with self.subTest(staging):
                self.measure("bandwidth", "--staging", staging, sizes=[1025, 8 << 20], paths=["rdma"],
                             directions=DIRECTIONS, ops=BY_EVENTS)

    def test_depth_one_and_a_deep_window(self):
        for depth in (1, 1024):
            with self.subTest(depth):
                self.measure("bandwidth", "--depth", depth, sizes=[64, 65537], directions=["both"], ops=BY_EVENTS)

    def test_nothing_posted_inline(self):
        self.measure("latency", "--inline", 0, sizes=[1, 64], ops=["send", "write_imm"])


@unittest.skipUnless(SOFTVERBS, "this build has no softverbs")
class Softverbs(MidRun, TestCase):
    FABRIC = FABRIC

    def test_every_table_and_file_is_labelled_functional_and_says_why(self):
        for command in ("compare", "latency", "bandwidth"):
            with self.subTest(command):
                outcome = self.run_program(command, "--loopback", *FABRIC, "--sizes", "4k", "--require", "tcp,rdma,gdr",
                                           *QUICK, "--out", self.folder / "result.json")
                self.assert_ends(outcome, DONE)
                shown = " ".join(outcome.out.split())
                self.assertIn("fabric softverbs softverbs0 (functional, not a performance result)", shown)
                self.assertIn("softverbs is a NIC in software: its figures show that the paths work, and are no "
                              "measure of RDMA", shown)
                result = self.result()
                self.assertIs(result["functional"], True)
                self.assertEqual([], result["skipped"])
                self.assertEqual(("softverbs", "softverbs0"), (result["fabric"]["kind"], result["fabric"]["device"]))
                self.assertEqual({"tcp", "rdma", "gdr"}, {case["path"] for case in result["cases"]})
                self.assertEqual({"none", "host"}, {case["registration"] for case in result["cases"]})

    def test_a_setting_that_the_device_cannot_meet_is_refused_with_the_reason(self):
        for flags, text in ((["--device", "nosuch"], r"named 'nosuch'; there: softverbs0 \(softverbs\)"),
                            (["--remote-device", "nosuch"], r"named 'nosuch'; there: softverbs0 \(softverbs\)"),
                            (["--gid-index", "9999"], "initiator: slot 9999 of the GID table of softverbs0"),
                            (["--remote-gid-index", "9999"], r"127\.0\.0\.1:\d+: slot 9999 of the GID table")):
            with self.subTest(flags):
                self.assert_ends(self.run_program("latency", "--loopback", *FABRIC, "--paths", "gdr", *flags, *QUICK),
                                 UNAVAILABLE, text)


if __name__ == "__main__":
    main()
