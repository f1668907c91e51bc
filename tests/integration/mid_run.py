"""What happens to a run over queue pairs when an end of it goes away: the same on every fabric."""

import json
import signal
import time

from harness import DONE, INTERRUPTED, PATIENCE_S, PEER_LOST, QUICK, SOON_S, check_result

# Of two sizes the second is under way when its case is opened, and takes a while; the first is measured by then.
LONG = ["--sizes", "8,4k", "--benchmark_repetitions=1", "--benchmark_min_time=0.3"]
# Both ends at work; one polls and the messages do not wake the other; staged.
RUNS = [("latency", "gdr", "send", "event"), ("bandwidth", "gdr", "write", "poll"),
        ("latency", "rdma", "send", "event")]


def only(path):
    return ["--paths", path, "--require", path]


class MidRun:
    """For a TestCase; `FABRIC` are the flags that choose the fabric at both ends."""

    FABRIC = []

    def result(self):
        """Our part of the result file, which fits the schema."""
        file = self.folder / "result.json"
        self.assertEqual("", check_result(file))
        return json.loads(file.read_text())["gdrbench"]

    def start_long_run(self, server, suite, path, op, completion):
        """A client in mid-run, its first size measured."""
        direction = ["--direction", "forward"] if suite == "bandwidth" else []
        client = self.start(suite, server.address, *self.FABRIC, *only(path), "--op", op, "--completion", completion,
                            *LONG, *direction, "--out", self.folder / "result.json")
        server.wait_for(rf"{suite}/{path}/{op}/4096\b", PATIENCE_S)
        time.sleep(0.1)
        self.assertTrue(client.is_running(), client.err)
        return client

    def assert_kept_what_was_measured(self):
        result = self.result()
        self.assertIs(result["complete"], False)
        self.assertEqual([8], [case["size_bytes"] for case in result["cases"]])
        self.assertTrue(result["cases"][0]["repetitions"][0]["verified"])

    def test_a_server_killed_in_mid_run_is_a_lost_peer_named_soon(self):
        for run in RUNS:
            with self.subTest(run):
                server = self.serve(*self.FABRIC)
                client = self.start_long_run(server, *run)
                server.signal(signal.SIGKILL)
                self.assert_ends(client.finish(SOON_S), PEER_LOST, server.address)
                self.assert_kept_what_was_measured()

    def test_a_client_killed_in_mid_run_leaves_a_server_that_serves_the_next_one(self):
        for run in RUNS:
            with self.subTest(run):
                server = self.serve(*self.FABRIC)
                self.start_long_run(server, *run).signal(signal.SIGKILL)
                outcome = self.run_program("latency", server.address, *self.FABRIC, *only(run[1]), "--sizes", 8, *QUICK)
                self.assert_ends(outcome, DONE)
                server.kill()

    def test_ctrl_c_in_mid_run_ends_soon_and_keeps_the_results(self):
        for run in RUNS:
            with self.subTest(run):
                server = self.serve(*self.FABRIC)
                client = self.start_long_run(server, *run)
                client.signal(signal.SIGINT)
                self.assert_ends(client.finish(SOON_S), INTERRUPTED, "interrupted")
                self.assert_kept_what_was_measured()
