#!/usr/bin/python3
"""What the program says of faults that the software NIC injects at the client: each is found, and named for what it is."""

import json
import time
import unittest

from harness import DONE, FAILED, QUICK, SOFTVERBS, SOON_S, USAGE, TestCase, main

# The second message is the last one that every run has: how many more there are depends on its speed.
RETRIES_EXCEEDED = r"initiator: IBV_WC_RETRY_EXC_ERR \(12\), vendor error 0x0: "


@unittest.skipUnless(SOFTVERBS, "this build has no softverbs")
class Faults(TestCase):
    def measure(self, faults, *flags, suite="latency", path="gdr", size=4096):
        """The outcome of a client of a server that has no faults."""
        server = self.serve("--fabric", "softverbs")
        outcome = self.run_program(suite, server.address, "--fabric", "softverbs", "--paths", path, "--sizes", size,
                                   "--memory", "host", "--out", self.folder / "result.json", *QUICK, *flags,
                                   faults=faults)
        self.assert_serves(server)
        return outcome

    def test_a_changed_byte_fails_the_verification(self):
        for suite in ("latency", "bandwidth"):
            for op in ("send", "write_imm", "read"):
                with self.subTest(suite=suite, op=op):
                    self.assert_ends(self.measure("corrupt=1-", "--op", op, suite=suite), FAILED,
                                     r"gdr/.*wrong byte in (warm-up )?message \d+ of \d+, slot \d+, byte \d+: expected 0x")

    def test_a_changed_byte_of_a_staged_payload_fails_the_verification(self):
        for size in (8, 64 << 10, 1 << 20):  # the last goes in several frames
            for op in ("send", "write_imm"):
                with self.subTest(size=size, op=op):
                    outcome = self.measure("corrupt=1-", "--op", op, "--staging", "plain", path="rdma", size=size)
                    self.assert_ends(outcome, FAILED, r"rdma/.*wrong byte in (warm-up )?message \d+ of \d+, slot \d+, ")

    def test_a_changed_message_that_steers_a_staged_path_may_be_the_wire_s_doing(self):
        # A staged read begins with a message that asks for the data.
        self.assert_ends(self.measure("corrupt=1-", "--op", "read", path="rdma"), FAILED,
                         "broke the protocol of the staged path, or bytes were changed on the way")

    def test_a_lost_message_is_sent_again(self):
        # The second message, twice: its timeout passes each time, 4.096 µs << 18. No upper bound: that would be the machine's.
        began = time.monotonic()
        self.assert_ends(self.measure("drop=2-3", "--timeout", 18), DONE)
        self.assertGreater(time.monotonic() - began, 2 * 4.096e-6 * 2**18)
        (case,) = json.loads((self.folder / "result.json").read_text())["gdrbench"]["cases"]
        self.assertTrue(all(repetition["verified"] for repetition in case["repetitions"]))

    def test_messages_that_are_always_lost_exceed_the_retries(self):
        self.assert_ends(self.measure("drop=2-", "--timeout", 10), FAILED, RETRIES_EXCEEDED)

    def test_a_peer_that_is_cut_off_exceeds_the_retries(self):
        outcome = self.measure("cut=2")
        self.assert_ends(outcome, FAILED, RETRIES_EXCEEDED + "the remote process died")
        self.assertNotIn("4791", outcome.out + outcome.err)  # RoCE's port, which this fabric does not use

    def test_a_failed_work_request_is_named_with_its_vendor_error(self):
        self.assert_ends(self.measure("complete=2:LOC_PROT_ERR:0x51"), FAILED,
                         r"initiator: IBV_WC_LOC_PROT_ERR \(4\), vendor error 0x51: ")

    def test_a_verb_that_fails_is_named_with_its_error(self):
        for verb, error, words in (("ibv_reg_mr", "ENOMEM", r"register .* on softverbs0: ENOMEM"),
                                   ("ibv_create_qp", "ENOMEM", r"create queue pair on softverbs0: ENOMEM"),
                                   ("ibv_modify_qp", "ETIMEDOUT", r"move queue pair \d+ on softverbs0 to \w+: ETIMEDOUT"),
                                   ("ibv_post_send", "ENOMEM", r"ENOMEM")):
            with self.subTest(verb):
                outcome = self.measure(f"fail={verb}:1-:{error}")
                self.assertNotEqual(DONE, outcome.status, outcome.out + outcome.err)
                self.assertRegex(outcome.out + outcome.err, words)

    def test_a_delay_changes_nothing_but_the_time(self):
        began = time.monotonic()
        self.assert_ends(self.measure("delay=2:1s"), DONE)
        self.assertGreater(time.monotonic() - began, 1)

    def test_a_list_with_an_error_is_refused_with_the_item(self):
        outcome = self.run_program("serve", "--fabric", "softverbs", "--port", 0, seconds=SOON_S,
                                   faults="delay=1:1ms corrupt=x")
        self.assert_ends(outcome, USAGE, r"GDRBENCH_SOFTVERBS_FAULTS: fault 'corrupt=x' at position 13")


if __name__ == "__main__":
    main()
