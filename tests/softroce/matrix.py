#!/usr/bin/python3
"""Every path, operation and direction over many sizes, verified; run where there is an RDMA device.

Usage: matrix.py TARGET [gdrbench flags …]    TARGET: --loopback or the host of a server
"""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("GDRBENCH", str(ROOT / "build/release/gdrbench"))
OUT = pathlib.Path(os.environ.get("OUT", "."))
PATHS = ["tcp", "rdma", "gdr"]
OPS = ["send", "write", "write_imm", "read"]
# Small ones, odd ones, one below and above the path MTU, more than a chunk, the largest message of rxe and one beyond.
LATENCY_SIZES = [1, 3, 1023, 1025, 4097, 65537, 1 << 20, 8 << 20]
BANDWIDTH_SIZES = [1, 3, 1023, 1025, 65537, (1 << 20) + 1, 8 << 20, (8 << 20) + 1]
# One queue pair and several; every way of staging; both kinds of completion.
RUNS = [
    ("latency", OPS, LATENCY_SIZES, []),
    ("bandwidth", OPS, BANDWIDTH_SIZES, ["--direction", "forward,reverse"]),
    ("bandwidth", OPS, [3, 65537], ["--direction", "forward,reverse,both", "--queue-pairs", "3"]),
    ("bandwidth", OPS, [1025, (1 << 20) + 1], ["--direction", "both", "--staging", "plain"]),
    ("latency", ["send", "write_imm", "read"], [1, 65537], ["--completion", "event"]),
    ("bandwidth", ["send", "write_imm", "read"], [65537], ["--completion", "event", "--direction", "forward,reverse"]),
]


def run(number, target, suite, ops, sizes, flags):
    """The number of verified cases; exits when one is missing, unverified or the file does not fit the schema."""
    out = OUT / f"{suite}-{number}.json"
    command = [PROGRAM, suite, target, "--op", ",".join(ops), "--sizes", ",".join(map(str, sizes)),
               "--time-budget", "600", "--require", ",".join(PATHS), "--memory", "host",
               "--benchmark_repetitions=1", "--benchmark_min_time=8x", "--out", str(out), *flags]
    if suite == "bandwidth":
        command += ["--footprint", "1M"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([str(ROOT / "scripts/check-result"), str(out)], check=True, stdout=subprocess.DEVNULL)
    result = json.loads(out.read_text())["gdrbench"]
    directions = flags[flags.index("--direction") + 1].count(",") + 1 if "--direction" in flags else 1
    expected = len(PATHS) * len(ops) * len(sizes) * directions
    verified = [c for c in result["cases"] if all(r["verified"] for r in c["repetitions"]) and c["repetitions"]]
    if len(verified) != expected or not result["complete"]:
        sys.exit(f"{suite} {flags}: {len(verified)} of {expected} cases verified; skipped: {result['skipped']}")
    fabric = flags[flags.index("--fabric") + 1] if "--fabric" in flags else "soft-roce"
    if result["fabric"]["kind"] != fabric or not result["functional"]:
        sys.exit(f"{suite}: wrong label of the fabric: {result['fabric']}")
    print(f"{suite} {' '.join(flags)}: {expected} cases verified", flush=True)
    return expected


def main():
    target, extra = sys.argv[1], sys.argv[2:]
    total = sum(run(i, target, suite, ops, sizes, flags + extra) for i, (suite, ops, sizes, flags) in enumerate(RUNS))
    print(f"{total} cases verified")


if __name__ == "__main__":
    main()
