"""What the doctor says of a healthy soft-RoCE device: GDRBENCH names the program."""
import json
import os
import subprocess

outcome = subprocess.run([os.environ["GDRBENCH"], "doctor", "--json"], capture_output=True, text=True, timeout=120,
                         check=False)
assert outcome.returncode == 0, outcome.stderr + outcome.stdout
(end,) = json.loads(outcome.stdout)["ends"]
found = {(one["check"], one["subject"]): one for one in end["findings"]}
device = os.environ["RDMA_DEVICE"]

for check in ("rdma_devices", "ports", "gids", "memlock", "rdma_cm"):
    verdicts = {one["verdict"] for (name, _), one in found.items() if name == check}
    assert verdicts == {"ok"}, (check, [one for one in end["findings"] if one["check"] == check])
assert found["soft_roce", device]["cause"] == "rxe", found["soft_roce", device]
for path in ("tcp", "rdma", "gdr"):
    assert found["probe_transfer", path]["verdict"] == "ok", found["probe_transfer", path]
registered = [probe for probe in end["probes"] if probe["what"] == "register host"]
assert registered and all(probe["outcome"] == "passed" for probe in registered), end["probes"]
print(f"doctor: {end['summary']}; {end['counts']}")
