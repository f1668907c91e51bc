#!/usr/bin/python3
"""--fabric: which device the program decides for, when it loads the software NIC, and what it says when it cannot."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

from harness import (DONE, PATIENCE_S, PROGRAM, QUICK, RDMA_DEVICES, REPOSITORY, SOFTVERBS, SOON_S, UNAVAILABLE, USAGE,
                     TestCase, main)

LIBRARY = "libgdrbench_softverbs.so"
FAKE_NIC = os.environ.get("GDRBENCH_FAKE_NIC")  # lists the device fake0, as of hardware
NOT_THERE = rf"{LIBRARY} is neither in (\S+) nor in (\S+); build it .*--target gdrbench_softverbs"


def one_line(text):
    return " ".join(text.split())


class FabricCase(TestCase):
    def setUp(self):
        super().setUp()
        self.program = self.copy_program(self.folder / "bin")

    def copy_program(self, folder):
        """The program alone, with no software NIC beside it."""
        folder.mkdir()
        return shutil.copy(PROGRAM, folder / "gdrbench")

    def latency(self, *flags, host="--loopback", **how):
        return self.run_program("latency", host, "--sizes", 8, *flags, *QUICK, program=self.program, **how)

    def assert_skipped(self, outcome, *texts):
        """The paths over queue pairs, with these words in the reason."""
        self.assert_ends(outcome, DONE)
        reason = re.search(r"rdma, gdr skipped: (.*?) (host memory stands in|\d+ repetition)", one_line(outcome.out))
        self.assertTrue(reason, outcome.out)
        for text in texts:
            self.assertRegex(reason.group(1), text)
        return reason.group(1)


class WithoutTheLibrary(FabricCase):
    def test_softverbs_that_is_asked_for_is_an_error_with_both_places_and_the_remedy(self):
        for command in (["latency", "--loopback"], ["compare", "--loopback"], ["serve", "--port", 0]):
            for flags in (["--fabric", "softverbs"], ["--device", "softverbs0"]):
                if command[0] == "serve" and flags[0] == "--device":
                    continue
                with self.subTest(command=command, flags=flags):
                    outcome = self.run_program(*command, *flags, program=self.program, seconds=SOON_S)
                    self.assert_ends(outcome, UNAVAILABLE, NOT_THERE)
                    places = re.search(NOT_THERE, outcome.err).groups()
                    self.assertEqual(str(self.folder / "bin"), places[0])
                    self.assertTrue(places[1].startswith(str(self.folder)), places)

    def test_it_is_not_looked_for_where_nothing_would_run_on_it(self):
        self.assert_ends(self.latency("--fabric", "softverbs", "--paths", "tcp,tcp_wire"), DONE)
        for flags in (["--fabric", "hardware"], ["--fabric", "soft-roce"], ["--device", "mlx5_0"],
                      ["--remote-device", "mlx5_0"], ["--fabric", "hardware", "--device", "softverbs0"]):
            with self.subTest(flags):
                self.assertNotIn("softverbs,", self.assert_skipped(self.latency(*flags), "no (usable )?RDMA device"))

    @unittest.skipIf(RDMA_DEVICES, "this machine has RDMA devices")
    def test_auto_goes_on_without_and_says_so(self):
        self.assert_skipped(self.latency(), "no RDMA device: ", NOT_THERE)
        server = self.serve(program=self.program)
        server.wait_for(rf"This end has no RDMA device: .*{NOT_THERE}")
        self.assert_serves(server)

    def test_a_library_that_the_loader_refuses_is_an_error_and_no_endless_loop(self):
        (self.folder / "bin" / LIBRARY).write_text("no library")
        self.assert_ends(self.latency("--fabric", "softverbs", seconds=SOON_S), UNAVAILABLE,
                         f"preloading {self.folder}/bin/{LIBRARY}: the program runs without it")
        if not RDMA_DEVICES:
            self.assert_skipped(self.latency(seconds=SOON_S), "the program runs without it")

    def test_a_path_that_ld_preload_cannot_hold_is_refused(self):
        self.program = self.copy_program(self.folder / "a folder")
        (self.folder / "a folder" / LIBRARY).touch()
        self.assert_ends(self.latency("--fabric", "softverbs"), UNAVAILABLE, "LD_PRELOAD cannot hold a path with a")


@unittest.skipUnless(FAKE_NIC, "GDRBENCH_FAKE_NIC names no library")
class WithOneDevice(FabricCase):
    def test_auto_takes_a_device_that_is_there_and_does_not_look_for_softverbs(self):
        reason = self.assert_skipped(self.latency(preload=FAKE_NIC), "fake0")
        self.assertNotIn("softverbs", reason)
        server = self.serve(program=self.program, preload=FAKE_NIC)
        server.wait_for(r"This end has RDMA device fake0 \(hardware\)\.$")

    def test_a_device_of_another_fabric_than_asked_for_is_named(self):
        self.assert_skipped(self.latency("--fabric", "soft-roce", preload=FAKE_NIC),
                            r"no usable RDMA device of fabric soft-roce; there: fake0 \(hardware\)")


@unittest.skipUnless(SOFTVERBS, "this build has no softverbs")
class WithTheLibrary(FabricCase):
    def test_it_is_found_beside_the_program_and_where_it_is_installed(self):
        absent = self.latency("--fabric", "softverbs")
        for place in map(pathlib.Path, re.search(NOT_THERE, absent.err).groups()):
            with self.subTest(place=place):
                place.mkdir(parents=True, exist_ok=True)
                shutil.copy(SOFTVERBS, place / LIBRARY)
                self.assert_ends(self.latency("--fabric", "softverbs", "--require", "rdma,gdr"), DONE)
                (place / LIBRARY).unlink()

    def test_it_is_not_loaded_twice_when_it_is_preloaded_already(self):
        self.assert_ends(self.latency("--fabric", "softverbs", "--require", "gdr", preload=SOFTVERBS), DONE)

    def test_what_was_preloaded_before_still_is(self):
        self.program = PROGRAM
        outcome = self.latency("--fabric", "softverbs", "--require", "gdr", preload="/nowhere/lib.so")
        self.assert_ends(outcome, DONE, "/nowhere/lib.so")
        self.assertEqual(2, outcome.err.count("/nowhere/lib.so"), outcome.err)  # the loader's words, at both starts

    @unittest.skipIf(RDMA_DEVICES, "this machine has RDMA devices")
    def test_auto_ends_on_it_without_a_device_at_both_ends(self):
        self.program = PROGRAM
        outcome = self.latency("--require", "rdma,gdr")
        self.assert_ends(outcome, DONE)
        self.assertIn("fabric softverbs softverbs0 (functional, not a performance result)", one_line(outcome.out))
        server = self.serve()
        server.wait_for(r"This end has RDMA device softverbs0 \(softverbs, functional\)\.$")
        self.assert_ends(self.latency("--require", "rdma,gdr", host=server.address), DONE)

    @unittest.skipUnless(FAKE_NIC, "GDRBENCH_FAKE_NIC names no library")
    def test_ends_on_different_fabrics_say_which_has_what_and_the_remedy(self):
        self.program = PROGRAM
        remedy = r"start both with --fabric softverbs \(there: gdrbench serve --fabric softverbs\)"
        fake, soft = r"fake0 \(hardware\)", r"softverbs0 \(softverbs\)"
        for flags, how, server_flags, server_how, here, there in (
                (["--fabric", "softverbs"], {}, [], {"preload": FAKE_NIC}, soft, fake),
                ([], {"preload": FAKE_NIC}, ["--fabric", "softverbs"], {}, fake, soft),
                (["--fabric", "softverbs"], {}, ["--fabric", "hardware"], {}, soft, "no RDMA device: .*")):
            if RDMA_DEVICES and not (how or server_how):
                continue
            with self.subTest(flags=flags, server_flags=server_flags):
                server = self.serve(*server_flags, **server_how)
                self.assert_skipped(self.latency(*flags, host=server.address, **how),
                                    rf"initiator \S+ has {here}; responder \S+ has {there}; {remedy}")


class Script(TestCase):
    """scripts/softverbs"""

    def run_script(self, *arguments, library):
        environment = dict(os.environ, GDRBENCH_SOFTVERBS_LIBRARY=str(library))
        return subprocess.run([REPOSITORY / "scripts" / "softverbs", *map(str, arguments)], env=environment, text=True,
                              capture_output=True, timeout=PATIENCE_S, check=False)

    def test_bad_usage_and_help(self):
        self.assertEqual(USAGE, self.run_script(library="").returncode)
        shown = self.run_script("--help", library="")
        self.assertEqual(DONE, shown.returncode)
        self.assertIn("ibv_rc_pingpong", shown.stdout)

    def test_an_absent_library_is_an_error_with_the_remedy(self):
        outcome = self.run_script("true", library=self.folder / "none.so")
        self.assertEqual(UNAVAILABLE, outcome.returncode)
        self.assertRegex(outcome.stderr, r"none\.so does not exist[\s\S]*what to do: ")

    @unittest.skipUnless(FAKE_NIC, "GDRBENCH_FAKE_NIC names no library")
    def test_the_command_runs_with_the_library_in_front_and_its_status_is_passed_on(self):
        outcome = self.run_script("sh", "-c", "echo $LD_PRELOAD; exit 7", library=FAKE_NIC)
        self.assertEqual((7, FAKE_NIC), (outcome.returncode, outcome.stdout.strip()), outcome.stderr)
        self.assertEqual(127, self.run_script("no-such-program", library=FAKE_NIC).returncode)


if __name__ == "__main__":
    main()
