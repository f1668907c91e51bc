#!/usr/bin/python3
"""Bad usage of scripts/softroce-vm is refused before it looks for a kernel."""

import os
import subprocess

from harness import PATIENCE_S, REPOSITORY, USAGE, TestCase, main


class SoftroceVm(TestCase):
    """What scripts/softroce-vm takes, before it looks for a kernel; a number that is right gets as far as the command
    that is not there."""

    def refusal(self, *arguments, real_cores=8, cores=None):
        nproc = self.folder / "nproc"
        nproc.write_text(f"#!/bin/sh\necho {real_cores}\n")
        nproc.chmod(0o755)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SOFTROCE_")}
        environment["PATH"] = f"{self.folder}:{environment['PATH']}"
        if cores is not None:
            environment["SOFTROCE_CORES"] = cores
        ended = subprocess.run([REPOSITORY / "scripts" / "softroce-vm", *arguments], env=environment,
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S,
                               check=False)
        self.assertEqual(USAGE, ended.returncode, ended.stderr)
        return ended.stderr

    def test_a_number_with_leading_zeros_or_of_no_use_is_refused(self):
        for text in ("08", "0600", "", "1x", "-1", "99999999999999999999"):
            for flag in ("--memory", "--timeout"):
                with self.subTest(flag=flag, text=text):
                    self.assertIn(f"{flag} wants a whole number without leading zeros, not '{text}'",
                                  self.refusal(flag, text))
        self.assertIn("SOFTROCE_CORES wants a whole number", self.refusal(cores="08"))
        self.assertIn("SOFTROCE_CORES=0", self.refusal(cores="0"))
        for arguments in (["--timeout", "0"], ["--memory", "2048", "--timeout", "90"]):
            self.assertIn("no command given", self.refusal(*arguments))

    def test_numa_goes_by_the_cores_that_a_node_would_get(self):
        numa = ["--numa", "--nodes", "2"]
        for how in ({"real_cores": 4}, {"real_cores": 2, "cores": "2"}):
            with self.subTest(**how):
                self.assertIn("no command given", self.refusal(*numa, **how))
        for how in ({"real_cores": 2}, {"cores": "1"}):
            with self.subTest(**how):
                self.assertIn("at least SOFTROCE_CORES=2", self.refusal(*numa, **how))
        self.assertIn("give --nodes 2", self.refusal("--numa"))


if __name__ == "__main__":
    main()
