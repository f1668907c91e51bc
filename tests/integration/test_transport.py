#!/usr/bin/python3
"""Unreliable connections: messages that the software NIC loses are counted, and nothing waits for them."""

import json
import unittest

from harness import DONE, FAILED, SOFTVERBS, UNAVAILABLE, USAGE, TestCase, check_result, main

MESSAGES = 100  # of a run; as many as are in flight, so that the target has a receive for each
RUNS = 3


@unittest.skipUnless(SOFTVERBS, "this build has no softverbs")
class UnreliableConnection(TestCase):
    def measure(self, suite, op, *flags, faults=None, paths="gdr"):
        """Outcome of a client of a server that has no faults, and the repetitions of the first case."""
        server = self.serve("--fabric", "softverbs")
        out = self.folder / "result.json"
        outcome = self.run_program(suite, server.address, "--fabric", "softverbs", "--memory", "host", "--transport", "uc",
                                   "--paths", paths, "--op", op, f"--benchmark_repetitions={RUNS}",
                                   f"--benchmark_min_time={MESSAGES}x", "--out", out, *flags, faults=faults)
        self.assert_serves(server)
        cases = json.loads(out.read_text())["gdrbench"]["cases"] if out.exists() else []
        if outcome.status == DONE:
            self.assertEqual("", check_result(out))
        for case in cases:
            for rank in case["proof"]:
                self.assertEqual("uc", rank["verbs"]["settings"]["transport"])
        return outcome, cases[0]["repetitions"] if cases else []

    def stream(self, op, faults=None):
        # A window that holds all messages of a run, in slots of their own.
        return self.measure("bandwidth", op, "--sizes", "4k", "--direction", "forward", "--depth", 2 * MESSAGES,
                            faults=faults)

    def test_without_loss_every_message_of_a_stream_arrives(self):
        for op in ("send", "write"):
            with self.subTest(op=op):
                outcome, repetitions = self.stream(op)
                self.assert_ends(outcome, DONE)
                self.assertEqual([0] * RUNS, [one["messages_lost"] for one in repetitions])
                self.assertEqual([True] * RUNS, [one["verified"] for one in repetitions])

    def test_each_lost_message_of_a_stream_is_counted(self):
        # By the count of messages over the whole process: one in the first run, two in the second.
        faults = f"drop=7,drop={MESSAGES + 11},drop={MESSAGES + 12}"
        for op in ("send", "write"):
            with self.subTest(op=op):
                outcome, repetitions = self.stream(op, faults)
                self.assert_ends(outcome, DONE)
                self.assertEqual(3, sum(one["messages_lost"] for one in repetitions), repetitions)
                self.assertEqual([True] * RUNS, [one["verified"] for one in repetitions])
                self.assertIn("lost messages: gdr 3 of 300", outcome.out)

    def test_a_changed_byte_is_found_in_spite_of_losses(self):
        for op in ("send", "write"):
            with self.subTest(op=op):
                outcome, _ = self.stream(op, "drop=7,corrupt=20")
                self.assert_ends(outcome, FAILED, "wrong byte in slot")

    def test_a_lost_ping_is_posted_again_and_its_time_is_no_sample(self):
        for op in ("send", "write"):
            with self.subTest(op=op):
                outcome, repetitions = self.measure("latency", op, "--sizes", "8", faults="drop=30,drop=31")
                self.assert_ends(outcome, DONE)
                self.assertGreaterEqual(sum(one["messages_lost"] for one in repetitions), 1)
                self.assertEqual([True] * RUNS, [one["verified"] for one in repetitions])

    def test_a_lost_answer_is_got_by_asking_again(self):
        server = self.serve("--fabric", "softverbs", faults="drop=30")
        for op in ("send", "write"):
            with self.subTest(op=op):
                outcome = self.run_program("latency", server.address, "--fabric", "softverbs", "--memory", "host",
                                           "--transport", "uc", "--paths", "gdr", "--op", op, "--sizes", "8",
                                           f"--benchmark_min_time={MESSAGES}x", "--benchmark_repetitions=1")
                self.assert_ends(outcome, DONE)

    def test_a_connection_that_loses_everything_ends_with_the_reason(self):
        outcome, _ = self.measure("latency", "send", "--sizes", "8", faults="drop=1-")
        self.assert_ends(outcome, FAILED, "no message arrived though it was sent 50 times")

    def test_what_an_unreliable_connection_cannot_do_is_said(self):
        for flags, text in ((("latency", "read"), "send and write are measured, and no read"),
                            (("latency", "write_imm"), "and no write_imm"),
                            (("bandwidth", "send", "--direction", "both"), "use --direction forward"),
                            (("visible", "send"), "may lose the message that is waited for"),
                            (("latency", "send", "--connect", "rdma_cm"), "rdma_cm connects reliable queue pairs")):
            with self.subTest(flags=flags):
                self.assert_ends(self.measure(*flags)[0], UNAVAILABLE, text)
        self.assert_ends(self.measure("latency", "send", paths="rdma")[0], UNAVAILABLE, "use --transport rc")
        self.assert_ends(self.run_program("latency", "--loopback", "--transport", "ud"), USAGE, "unknown transport 'ud'")


if __name__ == "__main__":
    main()
