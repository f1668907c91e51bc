#!/usr/bin/python3
"""What the doctor says of two nodes between which every packet to the server arrives twice: argument 1 is the server,
GDRBENCH names the program."""
import json
import os
import subprocess
import sys

PROGRAM, PEER = os.environ["GDRBENCH"], sys.argv[1]


subprocess.run(["tc", "qdisc", "add", "dev", "eth0", "root", "netem", "duplicate", "100%"], check=True)
outcome = subprocess.run([PROGRAM, "doctor", PEER, "--json"], capture_output=True, text=True, timeout=200, check=False)
subprocess.run(["tc", "qdisc", "del", "dev", "eth0", "root"], check=True)

# A slow machine adds losses of its own, so only the server's copies are looked for.
server = json.loads(outcome.stdout)["ends"][1]
(loss,) = [one for one in server["findings"] if (one["check"], one["cause"]) == ("counters", "loss")]
copies = [seen["value"] for seen in loss["evidence"] if seen["source"] == "rxe0/1/duplicate_request over the run"]
assert len(copies) == 1 and int(copies[0]) > 0, loss
print(f"doctor between two nodes: {copies[0]} copies at the server")
