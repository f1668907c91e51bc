"""A verbs program of the distribution as two processes over an RDMA device, and what its output says.

Environment: RDMA_DEVICE (softverbs0) names the device, GDRBENCH_SOFTVERBS_RUN is a command that the programs are run
by, such as softverbs; empty where the kernel offers the device.
"""

import collections
import ctypes
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tty
import unittest

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
DEVICE = os.environ.get("RDMA_DEVICE", "softverbs0")
PREFIX = shlex.split(os.environ.get("GDRBENCH_SOFTVERBS_RUN", ""))
SOFTVERBS = DEVICE.startswith("softverbs")
DEADLINE_S = 30
# Perftest gauges the processor's clock anew for each size, which on a busy machine takes it seconds.
SIZE_DEADLINE_S = 4
START_S = 20  # a busy machine
LISTENING = "0A"  # state in /proc/net/tcp
ITERATIONS = 20
FEW = 5  # the fewest that perftest takes, for messages up to 8 MiB
ALL_SIZES = [2 ** power for power in range(1, 24)]  # perftest's -a
COMPLAINT = re.compile(r".*\b(?:error|fail(?:ed|ure)?|couldn't|unable|invalid|wrong|unexpected|not supported)\b.*",
                       re.IGNORECASE)

Row = collections.namedtuple("Row", "size_bytes iterations figures")
LATENCY_FIGURES = ["min", "max", "typical", "average", "deviation", "p99", "p99_9"]
BANDWIDTH_FIGURES = ["peak", "average", "rate"]


def rows_of(text):
    """The figures of perftest's table, by name.

    Its deviation may be the root of something negative (nan), and all of a row inf where a busy machine kept it from
    gauging the processor's clock: faults of its own.
    """
    names = LATENCY_FIGURES if "t_typical" in text else BANDWIDTH_FIGURES
    table = text.partition("#bytes")[2]
    row_format = re.compile(r"\s*\d+\s+\d+(\s+([\d.]+|-?nan|inf))+\s*")
    rows = [line.split() for line in table.splitlines() if row_format.fullmatch(line)]
    return [Row(int(row[0]), int(row[1]), dict(zip(names, map(float, row[2:])))) for row in rows]


class Program:
    """A program of the distribution; what it writes is gathered while it runs."""

    def __init__(self, folder, name, *arguments, before=(), environment=None):
        self.command = [*before, *PREFIX, name, *map(str, arguments)]
        # To a terminal the programs write line by line, so that one which hangs or is killed has said where it is.
        terminal, out = os.openpty()
        tty.setraw(out)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as err:
            self._err = pathlib.Path(err.name)
            self._popen = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                           env={**os.environ, **(environment or {})},
                                           preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        os.close(out)
        self._chunks = []
        self._reader = threading.Thread(target=self._read, args=(terminal,), daemon=True)
        self._reader.start()

    def _read(self, terminal):
        with open(terminal, "rb", buffering=0) as stream:
            try:
                while chunk := stream.read(65536):
                    self._chunks.append(chunk)
            except OSError:
                pass  # EIO: the other end of the terminal is closed

    @property
    def out(self):
        return b"".join(self._chunks).decode(errors="replace")

    @property
    def text(self):
        return self.out + self._err.read_text(errors="replace")

    @property
    def shown(self):
        return f"\n--- {shlex.join(self.command)}: exit status {self._popen.poll()}\n{self.text}"

    def is_running(self):
        return self._popen.poll() is None

    def is_listening(self, port):
        """Whether there is a socket that listens to it in the program's own network namespace."""
        for table in ("tcp", "tcp6"):
            try:
                lines = pathlib.Path(f"/proc/{self._popen.pid}/net/{table}").read_text().splitlines()[1:]
            except OSError:
                continue  # the program has ended, or there is no IPv6
            if any(f[1].endswith(f":{port:04X}") and f[3] == LISTENING for f in map(str.split, lines)):
                return True
        return False

    def wait(self, seconds):
        """The exit status; None when it still runs then."""
        try:
            status = self._popen.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            return None
        self._reader.join()
        return status

    def kill(self):
        self._popen.kill()
        self._popen.wait()
        self._reader.join()


class ProgramTest(unittest.TestCase):
    before = ((), ())  # what the server's and the client's command begin with
    server_address = "127.0.0.1"
    environment = None

    def setUp(self):
        for tool, package in (("ibv_rc_pingpong", "ibverbs-utils"), ("ib_send_bw", "perftest")):
            if not shutil.which(tool):
                self.skipTest(f"{tool} is missing; apt-get install {package}")
        if not PREFIX and not pathlib.Path("/sys/class/infiniband", DEVICE).exists():
            self.skipTest(f"the kernel has no {DEVICE}; set RDMA_DEVICE or GDRBENCH_SOFTVERBS_RUN")
        self.folder = tempfile.mkdtemp(prefix="gdrbench-programs-")
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, name, *arguments, before=()):
        program = Program(self.folder, name, *arguments, before=before, environment=self.environment)
        self.addCleanup(program.kill)
        return program

    def start_pair(self, name, *arguments):
        """Server and client, the latter once the former listens."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        options = [name, "-d", DEVICE, "-p", port, *arguments]
        server = self.start(*options, before=self.before[0])
        deadline = time.monotonic() + START_S
        while not server.is_listening(port):
            self.assertTrue(server.is_running(), "the server has ended before it listened" + server.shown)
            self.assertLess(time.monotonic(), deadline, "the server does not listen" + server.shown)
            time.sleep(0.01)
        client = self.start(*options, self.server_address, before=self.before[1])
        return server, client

    def run_pair(self, name, *arguments, seconds=DEADLINE_S):
        """What both wrote to stdout, once both have ended well and without a complaint."""
        server, client = self.start_pair(name, *arguments)
        deadline = time.monotonic() + seconds
        statuses = [program.wait(deadline - time.monotonic()) for program in (client, server)]
        shown = client.shown + server.shown
        self.assertEqual([0, 0], statuses, f"within {seconds} s" + shown)
        for program in (client, server):
            self.assertNotRegex(program.text, COMPLAINT, shown)
        return server.out, client.out

    def assert_ping_pong(self, name, size_bytes, iterations, *arguments):
        texts = self.run_pair(name, "-s", size_bytes, "-n", iterations, "-g", self.gid_index(), *arguments)
        for text in texts:
            self.assertRegex(text, rf"(?m)^{2 * size_bytes * iterations} bytes in [\d.]+ seconds = ", text)
            self.assertRegex(text, rf"(?m)^{iterations} iters in [\d.]+ seconds = [\d.]+ usec/iter$", text)

    def assert_measures(self, name, sizes, *arguments, iterations=ITERATIONS, queue_pairs=1):
        """Checks the client's table, and the server's where it has an own one."""
        server, client = self.run_pair(name, "-F", "-n", iterations, *arguments,
                                       *(["-q", queue_pairs] if queue_pairs > 1 else []),
                                       seconds=DEADLINE_S + SIZE_DEADLINE_S * len(sizes))
        measured = [client, server] if "send" in name or name == "ib_write_lat" else [client]
        for text in measured:
            rows = rows_of(text)
            self.assertEqual([(size, iterations * queue_pairs) for size in sizes],
                             [(row.size_bytes, row.iterations) for row in rows], text)
            for row in rows:
                self.assert_figures(name, row, text, peak=text is client)

    def assert_figures(self, name, row, text, peak):
        figures = row.figures
        if name.endswith("_lat"):
            self.assertEqual(LATENCY_FIGURES, list(figures), text)
            self.assertTrue(0 < figures["min"] <= figures["typical"] <= figures["max"], f"{row}\n{text}")
            self.assertTrue(figures["min"] <= figures["average"] <= figures["max"], f"{row}\n{text}")
            return
        self.assertEqual(BANDWIDTH_FIGURES, list(figures), text)
        self.assertGreater(figures["rate"], 0, text)
        # Two decimals of MiB/s, six of millions a second.
        of_rate = figures["rate"] * 1e6 * row.size_bytes / 2 ** 20
        self.assertAlmostEqual(figures["average"], of_rate, delta=0.02 + row.size_bytes / 2 ** 20 + 0.01 * of_rate)
        if peak:
            self.assertGreaterEqual(figures["peak"], figures["average"] - 0.01, text)

    def device_info(self, before=()):
        info = self.start("ibv_devinfo", "-v", "-d", DEVICE, before=before)
        self.assertEqual(0, info.wait(DEADLINE_S), info.shown)
        return info.text

    def gids(self, before=()):
        return dict((int(index), gid) for index, gid in
                    re.findall(r"(?m)^\s*GID\[\s*(\d+)\]:\s*([\da-f:.]+)", self.device_info(before)))

    def gid_index(self):
        """Of an IPv4 address, at both ends the same."""
        return next(index for index, gid in self.gids().items() if gid.startswith("::ffff:"))

    def active_mtu(self):
        return int(re.search(r"active_mtu:\s*(\d+)", self.device_info()).group(1))


def main():
    """Runs the tests of the calling file. Status 77 (ctest's "skipped") when every one of them was skipped."""
    result = unittest.main(exit=False, verbosity=2).result
    if result.wasSuccessful() and result.testsRun > 0 and len(result.skipped) == result.testsRun:
        sys.exit(77)
    sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)
