#!/usr/bin/python3
"""What goes wrong over queue pairs ends soon, says why and keeps the results; run where there is an RDMA device.

Usage: faults.py [unittest arguments …]; the program under test is named by the environment variable GDRBENCH.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
# The path to it is known only now.
from harness import DONE, QUICK, UNAVAILABLE, USAGE, TestCase, main  # noqa: E402
from mid_run import MidRun, only  # noqa: E402


class Faults(MidRun, TestCase):
    def test_a_setting_that_a_device_cannot_meet_is_refused_with_the_reason(self):
        no_device, no_gid = r"no usable RDMA device {}; there: rxe0 \(soft-roce\)", "slot 99 of the GID table of rxe0"
        for flags, status, text in [
                (["--device", "nosuch"], UNAVAILABLE, no_device.format("named 'nosuch'")),
                (["--remote-device", "nosuch"], UNAVAILABLE, no_device.format("named 'nosuch'")),
                (["--fabric", "hardware"], UNAVAILABLE, no_device.format("of fabric hardware")),
                (["--gid-index", "99"], UNAVAILABLE, "initiator: " + no_gid),
                (["--remote-gid-index", "99"], UNAVAILABLE, r"127\.0\.0\.1:\d+: " + no_gid),
                (["--mtu", "8192"], USAGE, r"--mtu 8192: outside 0 … 4096")]:
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
        initiator, responder = (rank["user_pct"] + rank["system_pct"] for rank in cpu)
        self.assertLess(responder, initiator / 2, cpu)

    def test_a_server_refuses_more_queue_pairs_than_its_limit(self):
        server = self.serve("--max-queue-pairs", 2)
        case = ["bandwidth", server.address, *only("gdr"), "--sizes", "4k", "--footprint", "1M", *QUICK]
        self.assert_ends(self.run_program(*case, "--queue-pairs", 3), UNAVAILABLE,
                         "3 queue pairs asked for.*this server's limit is 2")
        self.assert_ends(self.run_program(*case, "--queue-pairs", 2), DONE)


if __name__ == "__main__":
    main()
