#!/usr/bin/python3
"""The initiator needs the payload buffers and little else, whatever it sends and however long."""

import os
import pathlib
import re
import time
import unittest

from harness import DONE, PATIENCE_S, TestCase, main

MIB = 1 << 20
FOOTPRINT = 64 * MIB  # the default
ALLOWANCE = 64 * MIB  # for the program, its bounce buffers and results


def peak_resident_bytes(pid):
    """VmHWM of a process: the most memory it has had so far. None once it has ended."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return None
    return int(found.group(1)) * 1024 if found else None


@unittest.skipIf(os.environ.get("GDRBENCH_SANITIZED"), "a sanitizer keeps memory of its own")
class Memory(TestCase):
    def peak_of(self, *arguments):
        server = self.serve()
        client = self.start("bandwidth", server.address, "--completion", "event", "--benchmark_repetitions=1",
                            "--benchmark_min_time=0.05", *arguments)
        peak, deadline = 0, time.monotonic() + PATIENCE_S
        while client.is_running() and time.monotonic() < deadline:
            peak = max(peak, peak_resident_bytes(client.pid) or 0)
            time.sleep(0.005)
        self.assert_ends(client.finish(), DONE)
        return peak

    def assert_within(self, payload_buffers, *arguments):
        peak = self.peak_of(*arguments)
        self.assertGreater(peak, payload_buffers * FOOTPRINT, "the payload does not rotate through the footprint")
        self.assertLess(peak, payload_buffers * FOOTPRINT + ALLOWANCE)

    def test_one_direction_needs_one_footprint_and_little_else(self):
        for path in ("tcp", "tcp_wire"):
            for direction in ("forward", "reverse"):
                with self.subTest(path=path, direction=direction):
                    self.assert_within(1, "--paths", path, "--direction", direction)

    def test_both_directions_need_two_footprints_and_little_else(self):
        for path in ("tcp", "tcp_wire"):
            with self.subTest(path=path):
                self.assert_within(2, "--paths", path, "--direction", "both")

    def test_all_cases_of_a_long_list_share_the_payload_and_three_queue_pairs_do_too(self):
        self.assert_within(2, "--paths", "tcp,tcp_wire", "--op", "send,write_imm,read", "--sizes", "1k:1M:x4",
                           "--direction", "forward,reverse,both", "--queue-pairs", "3", "--benchmark_min_time=0.001")


if __name__ == "__main__":
    main()
