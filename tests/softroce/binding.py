#!/usr/bin/python3
"""Both ends run on the cores next to the NIC below their soft-RoCE device, unless told otherwise. Argument 1 is the
server, on such a machine as this: two NUMA nodes, the NIC at the second. GDRBENCH names the program."""
import json
import os
import pathlib
import subprocess
import sys

PROGRAM, PEER = os.environ["GDRBENCH"], sys.argv[1]
OUT = pathlib.Path("/tmp/binding.json")


def cores(of):
    return pathlib.Path("/sys/devices/system", of).read_text(encoding="ascii").strip()


def allowed(process):
    """The cores of its main thread, as the kernel has them."""
    for line in pathlib.Path("/proc", str(process), "status").read_text(encoding="ascii").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return line.split()[1]
    raise AssertionError(line)


def placed(*flags, before=()):
    """Where each end says that it ran, and all places where the kernel had this one in the meantime."""
    running = subprocess.Popen([*before, PROGRAM, "latency", PEER, "--paths", "rdma", "--require", "rdma", "--sizes", "8",
                                "--out", str(OUT), "--benchmark_repetitions=3", "--benchmark_min_time=0.2", *flags],
                               stdout=subprocess.DEVNULL)
    seen = set()
    while running.poll() is None:
        try:
            seen.add(allowed(running.pid))
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has just ended
    assert running.returncode == 0, running.returncode
    (case,) = json.loads(OUT.read_text(encoding="utf-8"))["gdrbench"]["cases"]
    return [(rank["binding"]["cores"], rank["binding"]["why"]) for rank in case["proof"]], seen


far, near, every = cores("node/node0/cpulist"), cores("node/node1/cpulist"), cores("cpu/online")
machine = json.loads(subprocess.run([PROGRAM, "topology", "--json"], check=True, capture_output=True, timeout=60).stdout)
(nic,) = machine["nics"]
assert (nic["numa_node"], nic["cores"]) == (1, near), nic
assert [(one["numa_node"], one["class"]) for one in machine["numa_distances"]] == [(0, "SYS"), (1, "NODE")], machine

bound = (near, "next to rxe0")
ends, seen = placed()
assert ends == [bound, bound], ends
assert near in seen and seen <= {near, every}, (seen, near, every)

ends, seen = placed("--bind", "none")
assert ends == [(every, "not bound: --bind none")] * 2, ends
assert seen == {every}, seen

# What the user has bound stays where it is; the other end is nobody's business.
ends, seen = placed(before=["taskset", "-c", far])
assert ends == [(far, f"not bound: this process was given cores {far} before"), bound], ends
assert far in seen and near not in seen, seen
print(f"binding: {near} of {every}, unless bound before or told not to")
