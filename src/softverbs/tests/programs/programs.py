#!/usr/bin/python3
"""The distribution's own verbs programs, unmodified, between two processes over an RDMA device: each by its result.

See program_test.py for the environment. Kernel soft-RoCE runs all of this save what says why it cannot.
"""

import os
import re
import shutil
import subprocess
import time
import unittest

from program_test import ALL_SIZES, DEADLINE_S, DEVICE, FEW, SOFTVERBS, ProgramTest, main

SOON_S = 10  # seven retries of 67 ms, and a busy machine
RETRY_EXC = 12  # IBV_WC_RETRY_EXC_ERR


class Device(ProgramTest):
    def test_the_device_is_listed_and_described(self):
        listed = self.start("ibv_devices")
        self.assertEqual(0, listed.wait(DEADLINE_S), listed.shown)
        self.assertRegex(listed.text, rf"(?m)^\s*{DEVICE}\s+[\da-f]{{16}}$")
        text = self.device_info()
        for pattern in (rf"hca_id:\s*{DEVICE}\n", r"state:\s*PORT_ACTIVE \(4\)", r"link_layer:\s*Ethernet",
                        r"phys_port_cnt:\s*1\n", r"atomic_cap:\s*ATOMIC_\w+"):
            self.assertRegex(text, pattern)
        for limit in ("max_qp", "max_qp_wr", "max_sge", "max_cq", "max_cqe", "max_mr", "max_pd", "max_srq", "max_ah",
                      "max_qp_rd_atom", "max_qp_init_rd_atom", "gid_tbl_len", "pkey_tbl_len"):
            self.assertGreater(int(re.search(rf"(?m)^\s*{limit}:\s*(\d+)$", text).group(1)), 0, limit)
        if SOFTVERBS:
            self.assertEqual(4096, self.active_mtu(), text)

    def test_each_gid_is_that_of_an_address_of_this_machine(self):
        addresses = subprocess.run(["ip", "-o", "addr"], capture_output=True, text=True, check=True).stdout
        gids = self.gids()
        self.assertTrue(gids)
        for gid in gids.values():
            if gid.startswith("::ffff:"):
                self.assertIn(f" {gid.removeprefix('::ffff:')}/", addresses)
        self.assertIn("RoCE v2", self.device_info())


class PingPong(ProgramTest):
    def test_reliable_connections(self):
        for size, arguments in [(4096, []), (4096, ["-c"]), (1, ["-c"]), (1023, ["-c", "-e"]), (4097, ["-c", "-N"]),
                                (65537, ["-e", "-N"]), (4096, ["-c", "-m", 4096]), (1 << 20, ["-c", "-r", 16])]:
            with self.subTest(size=size, arguments=arguments):
                self.assert_ping_pong("ibv_rc_pingpong", size, 200, *arguments)

    def test_unreliable_connections(self):
        for size, arguments in [(4096, []), (1, []), (1023, ["-e"]), (65537, []), (1 << 20, ["-e", "-r", 16])]:
            with self.subTest(size=size, arguments=arguments):
                self.assert_ping_pong("ibv_uc_pingpong", size, 200, *arguments)

    def test_many_messages(self):
        for arguments in [], ["-e"]:
            with self.subTest(arguments):
                self.assert_ping_pong("ibv_rc_pingpong", 64, 5000, *arguments)

    def test_datagrams(self):
        for size, arguments in [(2048, []), (1, ["-c"]), (1023, ["-e", "-c"]), (self.active_mtu(), ["-c"])]:
            with self.subTest(size=size, arguments=arguments):
                self.assert_ping_pong("ibv_ud_pingpong", size, 200, *arguments)

    def test_shared_receive_queues(self):
        for size, arguments in [(4096, []), (4096, ["-e", "-c"]), (1023, ["-q", 4, "-c"]), (65537, ["-q", 1, "-e"])]:
            with self.subTest(size=size, arguments=arguments):
                self.assert_ping_pong("ibv_srq_pingpong", size, 400, *arguments)


class Latency(ProgramTest):
    def test_every_size_is_measured(self):
        for name in "ib_send_lat", "ib_write_lat", "ib_read_lat":
            with self.subTest(name):
                self.assert_measures(name, ALL_SIZES, "-a", iterations=FEW)

    def test_both_ways_to_post_and_inline_data(self):
        for name, size in [("ib_send_lat", 2), ("ib_write_lat", 2), ("ib_read_lat", 2), ("ib_atomic_lat", 8)]:
            for arguments in [[], ["--use_old_post_send"]]:
                with self.subTest(name, arguments=arguments):
                    self.assert_measures(name, [size], *arguments, iterations=1000)
        for name in "ib_send_lat", "ib_write_lat":
            for inline_bytes in 0, 64:
                with self.subTest(name, inline_bytes=inline_bytes):
                    self.assert_measures(name, [33], "-s", 33, "-I", inline_bytes, iterations=1000)

    def test_both_atomics(self):
        for operation in "FETCH_AND_ADD", "CMP_AND_SWAP":
            with self.subTest(operation):
                self.assert_measures("ib_atomic_lat", [8], "-A", operation)

    def test_ends_that_sleep(self):
        for name, size in [("ib_send_lat", 2), ("ib_read_lat", 2), ("ib_atomic_lat", 8)]:
            with self.subTest(name):
                self.assert_measures(name, [size], "-e")

    def test_unreliable_connections(self):
        for name in "ib_send_lat", "ib_write_lat":
            with self.subTest(name):
                self.assert_measures(name, [2], "-c", "UC", iterations=1000)
                self.assert_measures(name, [2], "-c", "UC", "--use_old_post_send")
        self.assert_measures("ib_send_lat", ALL_SIZES, "-c", "UC", "-a", iterations=FEW)
        self.assert_measures("ib_send_lat", [2], "-c", "UC", "-e")

    def test_datagrams(self):
        up_to_mtu = [size for size in ALL_SIZES if size <= self.active_mtu()]
        self.assert_measures("ib_send_lat", [2], "-c", "UD")
        self.assert_measures("ib_send_lat", [2], "-c", "UD", "-e")
        self.assert_measures("ib_send_lat", up_to_mtu, "-c", "UD", "-a")


class Bandwidth(ProgramTest):
    verbs = [("ib_send_bw", 65536), ("ib_write_bw", 65536), ("ib_read_bw", 65536), ("ib_atomic_bw", 8)]

    def assert_all_measure(self, *arguments, **how):
        for name, size in self.verbs:
            # Writes have no completion to sleep on at the server; perftest refuses.
            if name == "ib_write_bw" and "-e" in arguments:
                continue
            with self.subTest(name):
                self.assert_measures(name, [size], *arguments, **how)

    def test_every_size_is_measured(self):
        for name in "ib_send_bw", "ib_write_bw", "ib_read_bw":
            with self.subTest(name):
                self.assert_measures(name, ALL_SIZES, "-a", iterations=FEW)

    def test_several_queue_pairs(self):
        self.assert_all_measure(queue_pairs=4, iterations=100)

    def test_both_directions(self):
        self.assert_all_measure("-b")

    def test_both_directions_of_several_queue_pairs(self):
        self.assert_all_measure("-b", queue_pairs=4, iterations=100)

    def test_ends_that_sleep(self):
        self.assert_all_measure("-e")

    def test_several_queue_pairs_of_ends_that_sleep(self):
        self.assert_all_measure("-e", queue_pairs=4, iterations=100)

    def test_both_directions_of_ends_that_sleep(self):
        # One queue pair: of several, perftest takes one batch of receives an event and may leave the last ones.
        self.assert_all_measure("-b", "-e")

    def test_both_atomics(self):
        for operation in "FETCH_AND_ADD", "CMP_AND_SWAP":
            with self.subTest(operation):
                self.assert_measures("ib_atomic_bw", [8], "-A", operation, iterations=200)

    def test_the_old_way_to_post_and_lists_of_requests(self):
        self.assert_all_measure("--use_old_post_send", iterations=200)
        for arguments in [["-l", 8], ["-l", 8, "--use_old_post_send"], ["-Q", 1], ["-m", 1024], ["-s", 12345]]:
            with self.subTest(arguments):
                size = 12345 if "-s" in arguments else 65536
                self.assert_measures("ib_write_bw", [size], *arguments, iterations=200)

    def test_a_shared_receive_queue(self):
        self.assert_measures("ib_send_bw", [4096], "-s", 4096, "--use-srq", queue_pairs=4, iterations=200)

    def test_unreliable_connections(self):
        for name in "ib_send_bw", "ib_write_bw":
            with self.subTest(name):
                self.assert_measures(name, [65536], "-c", "UC", iterations=200)
                self.assert_measures(name, [65536], "-c", "UC", "-b", iterations=100)
                self.assert_measures(name, [65536], "-c", "UC", queue_pairs=4, iterations=100)
        self.assert_measures("ib_write_bw", ALL_SIZES, "-c", "UC", "-a", iterations=FEW)
        self.assert_measures("ib_send_bw", [65536], "-c", "UC", "-e", iterations=100)

    def test_datagrams(self):
        mtu = self.active_mtu()
        self.assert_measures("ib_send_bw", [size for size in ALL_SIZES if size <= mtu], "-c", "UD", "-a")
        self.assert_measures("ib_send_bw", [mtu], "-c", "UD", "-e")
        self.assert_measures("ib_send_bw", [1024], "-c", "UD", "-s", 1024, queue_pairs=4)


class LostRemote(ProgramTest):
    @unittest.skipUnless(SOFTVERBS, "rxe takes perftest's retry count of 7 as retrying for ever")
    def test_a_server_killed_in_mid_run_is_a_retry_error_at_the_client_soon(self):
        for name in "ib_write_bw", "ib_read_bw", "ib_read_lat", "ib_atomic_lat":
            with self.subTest(name):
                server, client = self.start_pair(name, "-F", "-D", DEADLINE_S)
                deadline = time.monotonic() + DEADLINE_S / 2
                while "#bytes" not in client.out:  # the last that is written before the messages go
                    self.assertTrue(client.is_running() and time.monotonic() < deadline, client.shown + server.shown)
                    time.sleep(0.01)
                time.sleep(0.2)
                self.assertTrue(client.is_running() and server.is_running(), client.shown + server.shown)
                server.kill()
                self.assertIsNotNone(client.wait(SOON_S), f"still running {SOON_S} s after the kill" + client.shown)
                self.assertRegex(client.text, rf"(?i)status {RETRY_EXC}\b", client.shown)


class TwoHosts(ProgramTest):
    """Two network namespaces that a cable joins stand for two hosts."""

    def setUp(self):
        super().setUp()
        if not SOFTVERBS:
            self.skipTest(f"{DEVICE} belongs to one network namespace")
        if os.geteuid() != 0 or not shutil.which("ip"):
            self.skipTest("network namespaces need root and the program ip")
        names = [f"gdrbench-{os.getpid()}-{end}" for end in "ab"]
        for name in names:
            made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
            if made.returncode != 0:
                self.skipTest(f"ip netns add: {made.stderr.strip()}")
            self.addCleanup(subprocess.run, ["ip", "netns", "del", name], check=True)
        steps = ["-n {0} link add cable type veth peer name cable netns {1}"]
        for number, end in enumerate(("{0}", "{1}"), start=1):
            steps += [f"-n {end} addr add 10.78.0.{number}/24 dev cable", f"-n {end} link set cable up",
                      f"-n {end} link set lo up"]
        for step in steps:
            subprocess.run(["ip", *step.format(*names).split()], check=True)
        self.before = [("ip", "netns", "exec", name) for name in names]
        self.server_address = "10.78.0.1"

    def gid_index(self):
        """Of the cable, which must be the same at both ends for one command line to do."""
        indexes = {next(index for index, gid in self.gids(before).items() if gid == f"::ffff:10.78.0.{end}")
                   for end, before in enumerate(self.before, start=1)}
        self.assertEqual(1, len(indexes))
        return indexes.pop()

    def test_every_kind_of_transfer_goes_between_them_by_each_transport(self):
        for transport in "auto", "tcp":
            self.environment = {"GDRBENCH_SOFTVERBS_TRANSPORT": transport}
            with self.subTest(transport):
                self.assert_measures("ib_send_bw", ALL_SIZES, "-a", iterations=FEW)
                self.assert_measures("ib_write_lat", ALL_SIZES, "-a", iterations=FEW)
                self.assert_measures("ib_read_bw", ALL_SIZES, "-a", iterations=FEW)
                self.assert_measures("ib_atomic_lat", [8], iterations=200)
                self.assert_measures("ib_write_lat", [2], "-c", "UC", iterations=200)
                self.assert_ping_pong("ibv_uc_pingpong", 65537, 200, "-e")
                self.assert_ping_pong("ibv_ud_pingpong", 2048, 200, "-c")
                self.assert_ping_pong("ibv_rc_pingpong", 65537, 200, "-c", "-e")


if __name__ == "__main__":
    main()
