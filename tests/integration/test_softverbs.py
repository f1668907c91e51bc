#!/usr/bin/python3
"""All paths over the software NIC: every combination moves its data right and is labelled functional; a peer that
dies is named soon."""

import json
import signal
import time
import unittest

from harness import (DONE, INTERRUPTED, PATIENCE_S, PEER_LOST, QUICK, SOFTVERBS, SOON_S, UNAVAILABLE, TestCase,
                     check_result, main)
from matrix_case import DIRECTIONS, EDGES, FEW, MatrixCase

FABRIC = ["--fabric", "softverbs"]
BY_EVENTS = ["send", "write_imm", "read"]
# Of two sizes the second is under way when its case is opened, and takes a while; the first is measured by then.
LONG = ["--sizes", "8,4k", "--benchmark_repetitions=1", "--benchmark_min_time=0.3"]
# Both ends at work; one polls and the messages do not wake the other; staged.
RUNS = [("latency", "gdr", "send", "event"), ("bandwidth", "gdr", "write", "poll"),
        ("latency", "rdma", "send", "event")]


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
class Softverbs(TestCase):
    def result(self):
        """Our part of the result file, which fits the schema."""
        file = self.folder / "result.json"
        self.assertEqual("", check_result(file))
        return json.loads(file.read_text())["gdrbench"]

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
                            (["--peer-device", "nosuch"], r"named 'nosuch'; there: softverbs0 \(softverbs\)"),
                            (["--gid-index", "9999"], "initiator: slot 9999 of the GID table of softverbs0"),
                            (["--peer-gid-index", "9999"], r"127\.0\.0\.1:\d+: slot 9999 of the GID table")):
            with self.subTest(flags):
                self.assert_ends(self.run_program("latency", "--loopback", *FABRIC, "--paths", "gdr", *flags, *QUICK),
                                 UNAVAILABLE, text)

    def start_long_run(self, server, suite, path, op, completion):
        """A client in mid-run, its first size measured."""
        direction = ["--direction", "forward"] if suite == "bandwidth" else []
        client = self.start(suite, server.address, *FABRIC, "--paths", path, "--op", op, "--completion", completion,
                            *LONG, *direction, "--out", self.folder / "result.json")
        server.wait_for(rf"{suite}/{path}/{op}/4096\b", PATIENCE_S)
        time.sleep(0.1)
        self.assertTrue(client.is_running(), client.err)
        return client

    def assert_kept_what_was_measured(self):
        result = self.result()
        self.assertIs(result["complete"], False)
        self.assertEqual([8], [case["size_bytes"] for case in result["cases"]])
        self.assertTrue(result["cases"][0]["repetitions"][0]["verified"])

    def test_a_server_killed_in_mid_run_is_a_lost_peer_named_soon(self):
        for run in RUNS:
            with self.subTest(run):
                server = self.serve(*FABRIC)
                client = self.start_long_run(server, *run)
                server.signal(signal.SIGKILL)
                self.assert_ends(client.finish(SOON_S), PEER_LOST, server.address)
                self.assert_kept_what_was_measured()

    def test_a_client_killed_in_mid_run_leaves_a_server_that_serves_the_next_one(self):
        server = self.serve(*FABRIC)
        for run in RUNS:
            with self.subTest(run):
                self.start_long_run(server, *run).signal(signal.SIGKILL)
                outcome = self.run_program("latency", server.address, *FABRIC, "--require", run[1], "--paths", run[1],
                                           "--sizes", 8, *QUICK)
                self.assert_ends(outcome, DONE)
                server.kill()
                server = self.serve(*FABRIC)

    def test_ctrl_c_in_mid_run_ends_soon_and_keeps_the_results(self):
        for run in RUNS:
            with self.subTest(run):
                server = self.serve(*FABRIC)
                client = self.start_long_run(server, *run)
                client.signal(signal.SIGINT)
                self.assert_ends(client.finish(SOON_S), INTERRUPTED, "interrupted")
                self.assert_kept_what_was_measured()


if __name__ == "__main__":
    main()
