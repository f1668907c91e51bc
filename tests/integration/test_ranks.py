#!/usr/bin/python3
"""Two servers that measure between themselves, told so by a client that is none of the ranks, and several cases of one
client at the same time."""

import os
import re
import signal
import time
import unittest

from harness import DONE, FAILED, INTERRUPTED, PATIENCE_S, PEER_LOST, SOFTVERBS, SOON_S, UNAVAILABLE, USAGE, TestCase, main

COORDINATE = os.environ.get("GDRBENCH_COORDINATE")
RANK = r" \| elapsed (\S+) sent (\d+) received (\d+) cpu (\S+) p50 (\S+)"
RUN = re.compile(r"^verified (\d) iterations (\d+) bytes (\d+)" + RANK + RANK + "$", re.MULTILINE)
LONG = ["suite=bandwidth", "size=65536", "iterations=100000000"]  # bandwidth keeps no samples


class Ranks(TestCase):
    FLAGS = []
    PATHS = ["tcp", "tcp_wire"]

    def setUp(self):
        super().setUp()
        self.key = "sesame"
        self.servers = [self.serve(*self.FLAGS, key=self.key) for _ in range(2)]

    def start_coordinator(self, *arguments, key="sesame"):
        return self.start(*[server.port for server in self.servers], *arguments, program=COORDINATE, key=key)

    def coordinate(self, *arguments, **how):
        return self.start_coordinator(*arguments, **how).finish(PATIENCE_S)

    def assert_still_usable(self):
        outcome = self.coordinate(f"path={self.PATHS[0]}")
        self.assert_ends(outcome, DONE)
        for server in self.servers:
            self.assert_serves(server, key=self.key)


class TwoServers(Ranks):
    def test_measure_latency_between_themselves(self):
        for path in self.PATHS:
            for op in ("send", "write", "write_imm", "read"):
                with self.subTest(path=path, op=op):
                    outcome = self.coordinate("suite=latency", f"path={path}", f"op={op}", "size=4096")
                    self.assert_ends(outcome, DONE)
                    found = RUN.search(outcome.out)
                    self.assertTrue(found, outcome.out)
                    verified, iterations, moved = map(int, found.groups()[:3])
                    self.assertEqual((1, 100, 4096 * 100 * (1 if op == "read" else 2)), (verified, iterations, moved))
                    first, second = found.groups()[3:8], found.groups()[8:]
                    self.assertGreater(float(first[0]), 0)
                    self.assertGreater(float(first[4]), 0, "the percentiles of rank 0 are told")
                    self.assertEqual(0, float(second[4]))

    def test_measure_bandwidth_between_themselves_each_way(self):
        for path in self.PATHS:
            for op in ("send", "write_imm", "read"):
                for direction in ("forward", "reverse", "both"):
                    with self.subTest(path=path, op=op, direction=direction):
                        outcome = self.coordinate("suite=bandwidth", f"path={path}", f"op={op}", "size=65537",
                                                  f"direction={direction}", "completion=event")
                        self.assert_ends(outcome, DONE)
                        self.assertEqual("1", RUN.search(outcome.out).group(1))

    def test_serve_several_pairs_at_the_same_time(self):
        outcome = self.coordinate("pairs=4", "suite=bandwidth", f"path={self.PATHS[0]}", "size=65536")
        self.assert_ends(outcome, DONE)
        self.assertEqual(["1"] * 4, [found[0] for found in RUN.findall(outcome.out)])
        for server in self.servers:
            self.assertEqual(3, len(re.findall(r"connected, session \d of", server.out)), server.out)
        self.assert_still_usable()

    def start_long_run(self):
        coordinator = self.start_coordinator(*LONG, f"path={self.PATHS[0]}")
        coordinator.wait_for("opened")
        time.sleep(0.5)
        self.assertTrue(coordinator.is_running(), coordinator.err)
        return coordinator

    def test_one_of_which_is_killed_in_mid_run_is_named_and_the_other_serves_on(self):
        for killed in (0, 1):
            with self.subTest(killed=killed):
                coordinator = self.start_long_run()
                self.servers[killed].signal(signal.SIGKILL)
                self.assert_ends(coordinator.finish(SOON_S), PEER_LOST, self.servers[killed].address)
                self.assert_serves(self.servers[1 - killed], key=self.key)
                self.servers[killed] = self.serve(*self.FLAGS, key=self.key)

    def test_serve_the_next_client_when_theirs_is_killed_or_interrupted_in_mid_run(self):
        for number in (signal.SIGKILL, signal.SIGINT):
            with self.subTest(number):
                coordinator = self.start_long_run()
                coordinator.signal(number)
                outcome = coordinator.finish(SOON_S)
                if number == signal.SIGINT:
                    self.assertEqual(INTERRUPTED, outcome.status, outcome.err)
                self.assert_still_usable()


class TwoServersOverSockets(TwoServers):
    def test_get_no_client_without_the_key(self):
        self.assert_ends(self.coordinate(key="simsim"), USAGE, "the key is wrong")
        for server in self.servers:
            self.assertNotIn(self.key, server.out + server.err)

    def test_that_cannot_run_a_path_are_named_with_the_reason(self):
        outcome = self.coordinate("path=p2p", "op=write")
        self.assert_ends(outcome, UNAVAILABLE, rf"initiator {self.servers[0].address}: ")


@unittest.skipUnless(SOFTVERBS, "this build has no softverbs")
class TwoServersOverSoftverbs(TwoServers):
    FLAGS = ["--fabric", "softverbs"]
    PATHS = ["rdma", "rdma_wire"]

    def test_name_the_rank_of_a_failed_work_request(self):
        self.servers[1] = self.serve(*self.FLAGS, key=self.key, faults="complete=3:LOC_PROT_ERR:0x51")
        self.assert_ends(self.coordinate("path=rdma"), FAILED,
                         rf"responder {self.servers[1].address}: IBV_WC_LOC_PROT_ERR \(4\), vendor error 0x51: ")


del TwoServers  # runs as the classes made of it

if __name__ == "__main__":
    main()
