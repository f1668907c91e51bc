"""What the integration tests share: servers and clients as processes of their own, with a limit on every wait.

The program under test is named by the environment variable GDRBENCH, else it is that of the release build.
"""

import collections
import ctypes
import glob
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("GDRBENCH", str(REPOSITORY / "build" / "release" / "gdrbench"))

# The software NIC of this build; None where the build has none. Tests that need it fail where the file is absent.
SOFTVERBS = os.environ.get("GDRBENCH_SOFTVERBS_LIBRARY")
RDMA_DEVICES = glob.glob("/sys/class/infiniband/*")

# Exit status of the program.
DONE, FAILED, USAGE, UNAVAILABLE, PEER_LOST, INTERRUPTED = 0, 1, 2, 3, 4, 130

# The program promises five seconds; a machine that runs other things as well gets twice as long, and a sanitizer more.
SOON_S = 30 if os.environ.get("GDRBENCH_SANITIZED") else 10
PATIENCE_S = 60  # for what takes as long as it takes

# Sleeping ends share two cores more kindly than polling ones.
QUICK = ["--completion", "event", "--benchmark_repetitions=1", "--benchmark_min_time=0.001"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "GDRBENCH_KEY"}

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1

Outcome = collections.namedtuple("Outcome", "status out err")


def check_result(*files):
    """Faults found by scripts/check-result; empty when there are none."""
    command = [sys.executable, str(REPOSITORY / "scripts" / "check-result"), "--quiet", *map(str, files)]
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False).stderr


class Process:
    """The program with these arguments; its output is gathered line by line while it runs. `preload` is a library to
    load in front of all others, `faults` what goes wrong in the software NIC, `signals` what signal_on_mkdir sends."""

    def __init__(self, *arguments, key=None, preexec=None, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                 program=PROGRAM, preload=None, faults=None, signals=()):
        def prepare():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # also where the test itself is killed
            if preexec:
                preexec()

        environment = dict(ENVIRONMENT, **({"GDRBENCH_KEY": key} if key else {}),
                           **({"LD_PRELOAD": preload} if preload else {}),
                           **({"GDRBENCH_SOFTVERBS_FAULTS": faults} if faults else {}),
                           **({"GDRBENCH_TEST_SIGNALS": ",".join(str(int(s)) for s in signals)} if signals else {}))
        self._popen = subprocess.Popen([program, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=stdout,
                                       stderr=stderr, text=True, env=environment, preexec_fn=prepare,
                                       start_new_session=True)
        self.pid = self._popen.pid
        self._changed = threading.Condition()
        self._lines = {"out": [], "err": []}
        self._readers = [threading.Thread(target=self._read, args=(name, stream), daemon=True)
                         for name, stream in (("out", self._popen.stdout), ("err", self._popen.stderr)) if stream]
        for reader in self._readers:
            reader.start()

    def _read(self, name, stream):
        with stream:
            for line in stream:
                with self._changed:
                    self._lines[name].append(line)
                    self._changed.notify_all()

    @property
    def out(self):
        with self._changed:
            return "".join(self._lines["out"])

    @property
    def err(self):
        with self._changed:
            return "".join(self._lines["err"])

    def wait_for(self, pattern, seconds=SOON_S, count=1):
        """The last of `count` matches of the pattern in the output, once there are so many."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while True:
                found = list(re.finditer(pattern, "".join(self._lines["out"]), re.MULTILINE))
                if len(found) >= count:
                    return found[count - 1]
                left = deadline - time.monotonic()
                if left <= 0:
                    text = "".join(self._lines["out"] + self._lines["err"])
                    raise AssertionError(f"no {count} × '{pattern}' within {seconds} s in the output:\n{text}")
                self._changed.wait(left)

    def signal(self, number):
        self._popen.send_signal(number)

    def signal_group(self, number):
        """As a terminal does on Ctrl-C."""
        os.killpg(self.pid, number)

    def is_running(self):
        return self._popen.poll() is None

    def finish(self, seconds=PATIENCE_S):
        """Waits for the end; AssertionError when it does not come in time."""
        try:
            status = self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still running after {seconds} s; its output:\n{self.out}{self.err}") from None
        for reader in self._readers:
            reader.join(SOON_S)
        return Outcome(status, self.out, self.err)

    def kill(self):
        if self.is_running():
            self._popen.kill()
        self._popen.wait(SOON_S)


class Server(Process):
    """`gdrbench serve` on a free port of 127.0.0.1."""

    def __init__(self, *arguments, key=None, **how):
        super().__init__("serve", "--port", 0, *([] if key else ["--no-key"]), *arguments, key=key, **how)
        self.port = int(self.wait_for(r"listening on .*, port (\d+)").group(1))
        self.address = f"127.0.0.1:{self.port}"


class TestCase(unittest.TestCase):
    """Ends every process that a test started, and removes its folder."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gdrbench-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, *arguments, **how):
        process = Process(*arguments, **how)
        self.addCleanup(process.kill)
        return process

    def serve(self, *arguments, **how):
        server = Server(*arguments, **how)
        self.addCleanup(server.kill)
        return server

    def run_program(self, *arguments, seconds=PATIENCE_S, **how):
        return self.start(*arguments, **how).finish(seconds)

    def assert_ends(self, outcome, status, *texts):
        """Checks the exit status, and that the error names all these (regular expressions)."""
        shown = f"\nstdout:\n{outcome.out}\nstderr:\n{outcome.err}"
        self.assertEqual(status, outcome.status, shown)
        for text in texts:
            self.assertRegex(outcome.err, text, shown)

    def assert_serves(self, server, **how):
        """Checks that the server is up, and serves a client from the first message to the last."""
        self.assertTrue(server.is_running(), server.out + server.err)
        outcome = self.run_program("latency", server.address, "--paths", "tcp", "--sizes", 8, *QUICK, seconds=SOON_S,
                                   **how)
        self.assert_ends(outcome, DONE)
        self.assertIn("latency", outcome.out)


def main():
    """Runs the tests of the calling file. Status 77 (ctest's "skipped") when every one of them was skipped."""
    program = unittest.main(exit=False, verbosity=2)
    result = program.result
    if result.wasSuccessful() and result.testsRun > 0 and len(result.skipped) == result.testsRun:
        sys.exit(77)
    sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)
