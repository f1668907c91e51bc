"""What the tests of combinations share: paths, operations, sizes, directions and completions, each run and verified."""

import json

from harness import DONE, PATIENCE_S, TestCase, check_result

OPS = ["send", "write", "write_imm", "read"]
DIRECTIONS = ["forward", "reverse", "both"]
EDGES = [1, 3, 1023, 1025, 65537, 1 << 20, 8 << 20]  # around the alignment, the chunk and the largest segment
FEW = [3, 65537, 1 << 20]
ONE_RUN = ["--benchmark_repetitions=1", "--benchmark_min_time=20x", "--time-budget", "600"]


class MatrixCase(TestCase):
    PATHS: list  # those that are measured where a test names none
    FABRIC = "none"  # what the result has to name
    FLAGS = []  # of both ends

    def measure(self, suite, *flags, sizes, paths=None, ops=tuple(OPS), completion=("event",), directions=("forward",)):
        """Runs all combinations and checks that each was measured and verified, but for those that cannot be."""
        paths = paths or self.PATHS
        server = self.serve(*self.FLAGS)
        out = self.folder / "result.json"
        arguments = ["--paths", ",".join(paths), "--op", ",".join(ops), "--sizes", ",".join(map(str, sizes)),
                     "--completion", ",".join(completion), *self.FLAGS, *flags, *ONE_RUN, "--out", out]
        if suite == "bandwidth":
            arguments += ["--direction", ",".join(directions)]
        outcome = self.run_program(suite, server.address, *arguments, seconds=4 * PATIENCE_S)
        if outcome.status != DONE:
            state = "still running" if server.is_running() else "gone"
            self.fail(f"status {outcome.status}: {outcome.err}\nthe server, {state}, said:\n{server.out}{server.err}")
        self.assertEqual("", check_result(out))

        own = json.loads(out.read_text())["gdrbench"]
        self.assertEqual(self.FABRIC, own["fabric"]["kind"])
        found = {}
        for case in own["cases"]:
            key = case["path"], case["op"], case["size_bytes"], case["completion"], case["direction"]
            found[key] = case
            self.assertEqual([True], [run["verified"] for run in case["repetitions"]], key)
            run = case["repetitions"][0]
            ways = 2 if case["direction"] == "both" or (suite in ("latency", "visible") and case["op"] != "read") else 1
            self.assertEqual(case["size_bytes"] * run["iterations"] * ways, run["payload_bytes"], key)
        wanted = {(path, op, size, mode, direction)
                  for path in paths for op in ops for size in sizes for mode in completion for direction in directions
                  if not is_impossible(suite, path, op, mode)}
        self.assertEqual(wanted, set(found))
        for skipped in own["skipped"]:
            self.assertIn("a plain write raises no completion", skipped["reason"])
        return found


def is_impossible(suite, path, op, completion):
    """A plain write raises no completion where one would have to be waited for."""
    return op == "write" and completion == "event" and (path in ("tcp", "rdma") or suite == "latency")
