#!/usr/bin/python3
"""Every combination that sockets offer moves its data right: paths, operations, sizes, directions, queue pairs,
completion, staging. Each run checks the pattern that it moved; these tests check that every case ran and said so."""

import os
import resource
import unittest

from harness import DONE, UNAVAILABLE, main
from matrix_case import DIRECTIONS, EDGES, FEW, ONE_RUN, MatrixCase


class Matrix(MatrixCase):
    PATHS = ["tcp", "tcp_wire"]

    def test_latency_of_every_op_and_size_polling(self):
        self.measure("latency", sizes=EDGES, completion=["poll"])

    def test_latency_of_every_op_and_size_by_events(self):
        self.measure("latency", sizes=EDGES)

    def test_bandwidth_of_every_op_size_and_direction(self):
        self.measure("bandwidth", sizes=EDGES, ops=["send", "write_imm", "read"], directions=DIRECTIONS)
        self.measure("bandwidth", sizes=EDGES, ops=["write"], directions=DIRECTIONS, completion=["poll"])

    def test_bandwidth_over_three_queue_pairs_polling_and_by_events(self):
        found = self.measure("bandwidth", "--queue-pairs", 3, sizes=FEW, directions=DIRECTIONS,
                             completion=["poll", "event"])
        for case in found.values():
            self.assertEqual((3, 3), (case["queue_pairs"], case["proof"][0]["tcp"]["sockets"]))

    def test_plain_and_pageable_staging(self):
        for staging in ("plain", "pageable"):
            with self.subTest(staging):
                found = self.measure("bandwidth", "--staging", staging, sizes=[1025, 8 << 20], paths=["tcp"],
                                     directions=DIRECTIONS, ops=["send", "write_imm", "read"])
                self.assertEqual({staging}, {case["staging"]["variant"] for case in found.values()})
                self.measure("latency", "--staging", staging, sizes=[1, 65537], paths=["tcp"], ops=["send", "read"])

    def test_small_and_odd_chunks(self):
        self.measure("bandwidth", "--chunk", 257, sizes=[1, 256, 257, 258, 10007], paths=["tcp"], ops=["send", "read"],
                     directions=DIRECTIONS)
        self.measure("latency", "--chunk", "8388544", sizes=[8388543, 8388544, 8388545], paths=["tcp"], ops=["send"])

    def test_depth_one_and_a_deep_window(self):
        for depth in (1, 4096):
            with self.subTest(depth):
                self.measure("bandwidth", "--depth", depth, sizes=[64, 65537], directions=["both"],
                             ops=["send", "write_imm", "read"])

    def test_sizes_above_the_footprint(self):
        found = self.measure("bandwidth", "--footprint", "1M", sizes=[(1 << 20) + 1, 64 << 20], ops=["send", "read"])
        self.assertEqual({(1 << 20) + 64, 64 << 20}, {case["footprint_bytes"] for case in found.values()},
                         "one message of each size, on whole cache lines")

    def test_a_size_beyond_memory_is_skipped_with_both_numbers_and_the_others_are_measured(self):
        server = self.serve()
        for path in self.PATHS:
            with self.subTest(path):
                outcome = self.run_program("bandwidth", server.address, "--paths", path, "--sizes", "64,4398046511105",
                                           "--direction", "forward", *ONE_RUN)
                self.assert_ends(outcome, DONE)
                shown = " ".join(outcome.out.split())
                self.assertRegex(shown, rf"{path} skipped: .*allocating \d+ bytes \(4 TiB\).* only \d+ bytes .* available")
                self.assertRegex(outcome.out, rf"{path} +send forward +64 B")
        self.assert_serves(server)

    @unittest.skipIf(os.environ.get("GDRBENCH_SANITIZED"), "a sanitizer needs its address space for itself")
    def test_a_size_beyond_32_bits_is_not_cut_to_32_bits(self):
        server = self.serve()
        limited = {"preexec": lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))}
        outcome = self.run_program("bandwidth", server.address, "--paths", "tcp", "--sizes", "4294967297",
                                   "--direction", "forward", *ONE_RUN, **limited)
        self.assert_ends(outcome, UNAVAILABLE, r"allocating 42949\d+ bytes \(4 GiB\)", "ENOMEM", "ulimit -v")
        self.assert_serves(server)


if __name__ == "__main__":
    main()
