#!/usr/bin/python3
"""What goes wrong over queue pairs ends soon, says why and keeps the results; run where there is an RDMA device.

Usage: faults.py [unittest arguments …]; the program under test is named by the environment variable GDRBENCH.
"""

import json
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
# The path to it is known only now.
from harness import (DONE, INTERRUPTED, PATIENCE_S, PEER_LOST, QUICK, UNAVAILABLE, USAGE,  # noqa: E402
                     TestCase, check_result, main)

SOON_S = 5
# Of two sizes the second is under way when its case is opened, and takes a while; the first is measured by then.
LONG = ["--sizes", "8,4k", "--benchmark_repetitions=1", "--benchmark_min_time=0.3"]
# Both ends at work; one polls and the messages do not wake the other; staged.
RUNS = [("latency", "gdr", "send", "event"), ("bandwidth", "gdr", "write", "poll"),
        ("latency", "rdma", "send", "event")]


def only(path):
    return ["--paths", path, "--require", path]


class Faults(TestCase):
    def result(self):
        """Our part of the result file, which fits the schema."""
        file = self.folder / "result.json"
        self.assertEqual("", check_result(file))
        return json.loads(file.read_text())["gdrbench"]

    def start_long_run(self, server, suite, path, op, completion):
        """A client in mid-run, its first size measured."""
        direction = ["--direction", "forward"] if suite == "bandwidth" else []
        client = self.start(suite, server.address, *only(path), "--op", op, "--completion", completion, *LONG,
                            *direction, "--out", self.folder / "result.json")
        server.wait_for(rf"{suite}/{path}/{op}/4096\b", PATIENCE_S)
        time.sleep(0.1)
        self.assertTrue(client.is_running(), client.err)
        return client

    def assert_kept_what_was_measured(self):
        result = self.result()
        self.assertIs(result["complete"], False)
        self.assertEqual([8], [case["size_bytes"] for case in result["cases"]])
        self.assertTrue(result["cases"][0]["repetitions"][0]["verified"])

    def assert_serves(self, server, path):
        outcome = self.run_program("latency", server.address, *only(path), "--sizes", 8, *QUICK)
        self.assert_ends(outcome, DONE)

    def test_a_server_killed_in_mid_run_is_a_lost_peer_named_soon(self):
        for run in RUNS:
            with self.subTest(run):
                server = self.serve()
                client = self.start_long_run(server, *run)
                server.signal(signal.SIGKILL)
                self.assert_ends(client.finish(SOON_S), PEER_LOST, server.address)
                self.assert_kept_what_was_measured()

    def test_a_client_killed_in_mid_run_leaves_a_server_that_serves_the_next_one(self):
        server = self.serve()
        for run in RUNS:
            with self.subTest(run):
                client = self.start_long_run(server, *run)
                client.signal(signal.SIGKILL)
                self.assert_serves(server, run[1])
                server.kill()
                server = self.serve()

    def test_ctrl_c_in_mid_run_ends_soon_and_keeps_the_results(self):
        for run in RUNS:
            with self.subTest(run):
                server = self.serve()
                client = self.start_long_run(server, *run)
                client.signal(signal.SIGINT)
                self.assert_ends(client.finish(SOON_S), INTERRUPTED, "interrupted")
                self.assert_kept_what_was_measured()

    def test_a_setting_that_a_device_cannot_meet_is_refused_with_the_reason(self):
        no_device, no_gid = r"no usable RDMA device {}; there: rxe0 \(soft-roce\)", "slot 99 of the GID table of rxe0"
        for flags, status, text in [
                (["--device", "nosuch"], UNAVAILABLE, no_device.format("named 'nosuch'")),
                (["--peer-device", "nosuch"], UNAVAILABLE, no_device.format("named 'nosuch'")),
                (["--fabric", "hardware"], UNAVAILABLE, no_device.format("of fabric hardware")),
                (["--gid-index", "99"], UNAVAILABLE, "initiator: " + no_gid),
                (["--peer-gid-index", "99"], UNAVAILABLE, r"127\.0\.0\.1:\d+: " + no_gid),
                (["--mtu", "8192"], USAGE, r"\b8192 is (none|not) .*4096")]:
            with self.subTest(flags):
                outcome = self.run_program("latency", "--loopback", *only("gdr"), *flags, "--sizes", 8, *QUICK)
                self.assert_ends(outcome, status, text)

    def test_a_required_path_that_can_run_is_measured_and_labelled(self):
        outcome = self.run_program("latency", "--loopback", "--require", "gdr", "--sizes", 8, *QUICK, "--out",
                                   self.folder / "result.json")
        self.assert_ends(outcome, DONE)
        result = self.result()
        self.assertIs(result["complete"], True)
        self.assertEqual(("soft-roce", "rxe0"), (result["fabric"]["kind"], result["fabric"]["device"]))
        self.assertIn(("gdr", "host"), [(case["path"], case["registration"]) for case in result["cases"]])

    def test_one_sided_writes_take_no_processor_of_the_responder(self):
        outcome = self.run_program("bandwidth", "--loopback", *only("gdr"), "--op", "write", "--completion", "event",
                                   "--direction", "forward", "--sizes", "64k", "--benchmark_repetitions=1",
                                   "--benchmark_min_time=0.5", "--out", self.folder / "result.json")
        self.assert_ends(outcome, DONE)
        cpu = self.result()["cases"][0]["repetitions"][0]["cpu"]
        used = {end: cpu[end]["user_pct"] + cpu[end]["system_pct"] for end in ("initiator", "responder")}
        self.assertLess(used["responder"], used["initiator"] / 2, cpu)

    def test_a_server_refuses_more_queue_pairs_than_its_limit(self):
        server = self.serve("--max-queue-pairs", 2)
        case = ["bandwidth", server.address, *only("gdr"), "--sizes", "4k", "--footprint", "1M", *QUICK]
        self.assert_ends(self.run_program(*case, "--queue-pairs", 3), UNAVAILABLE,
                         "3 queue pairs asked for.*this server's limit is 2")
        self.assert_ends(self.run_program(*case, "--queue-pairs", 2), DONE)


if __name__ == "__main__":
    main()
