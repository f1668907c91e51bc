#!/usr/bin/python3
"""The launcher, from the sources, from the build folder and installed: each finds its library and runs programs on it.

Environment: SOFTVERBS_BUILD_FOLDER names the build folder of softverbs, GDRBENCH_SOFTVERBS_LIBRARY its library.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from program_test import DEADLINE_S, main

SOURCES = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ.get("SOFTVERBS_BUILD_FOLDER")
LIBRARY = pathlib.Path(os.environ.get("GDRBENCH_SOFTVERBS_LIBRARY", "none"))
USAGE, CANNOT_PRELOAD, NO_PROGRAM = 2, 3, 127


def run(launcher, *arguments, **environment):
    clean = {name: value for name, value in os.environ.items() if name != "GDRBENCH_SOFTVERBS_LIBRARY"}
    return subprocess.run([launcher, *arguments], env={**clean, **environment}, text=True, capture_output=True,
                          timeout=DEADLINE_S, check=False)


class Launcher(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="softverbs-launcher-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def assert_preloads(self, library, launcher, **environment):
        outcome = run(launcher, "sh", "-c", "echo $LD_PRELOAD; exit 7", **environment)
        self.assertEqual((7, str(library)), (outcome.returncode, outcome.stdout.strip()), outcome.stderr)

    def test_from_the_sources_takes_their_build_or_the_library_named(self):
        copy = self.folder / "softverbs"
        shutil.copy(SOURCES / "softverbs", copy)
        (self.folder / "CMakeLists.txt").touch()
        built = self.folder / "build" / LIBRARY.name
        built.parent.mkdir()
        shutil.copy(LIBRARY, built)
        self.assert_preloads(built, copy)
        self.assert_preloads(LIBRARY, copy, GDRBENCH_SOFTVERBS_LIBRARY=str(LIBRARY))

    def test_from_the_build_folder_takes_the_library_beside_it(self):
        self.assert_preloads(LIBRARY, LIBRARY.parent / "softverbs")

    @unittest.skipUnless(BUILD and shutil.which("cmake"), "SOFTVERBS_BUILD_FOLDER names no build, or there is no cmake")
    def test_installed_runs_programs_on_the_installed_library(self):
        subprocess.run(["cmake", "--install", BUILD, "--prefix", self.folder], check=True, stdout=subprocess.DEVNULL)
        launcher = self.folder / "bin" / "softverbs"
        library = next(self.folder.glob(f"lib*/**/{LIBRARY.name}"))
        self.assert_preloads(library, launcher)
        for document in "README.md", "LICENSE":
            self.assertTrue((self.folder / "share" / "doc" / "softverbs" / document).is_file(), document)
        if not shutil.which("ibv_devinfo"):
            self.skipTest("ibv_devinfo is missing; apt-get install ibverbs-utils")
        outcome = run(launcher, "ibv_devinfo")
        self.assertEqual(0, outcome.returncode, outcome.stderr)
        self.assertRegex(outcome.stdout, r"hca_id:\s*softverbs0")

    def test_refuses_bad_usage_and_shows_help(self):
        launcher = SOURCES / "softverbs"
        self.assertEqual(USAGE, run(launcher).returncode)
        self.assertEqual(USAGE, run(launcher, "--wrong").returncode)
        self.assertEqual(NO_PROGRAM, run(launcher, "no-such-program").returncode)
        shown = run(launcher, "--help")
        self.assertEqual(0, shown.returncode)
        self.assertIn("ibv_rc_pingpong", shown.stdout)

    def test_says_where_it_looked_for_a_library_that_is_not_there(self):
        outcome = run(SOURCES / "softverbs", "true", GDRBENCH_SOFTVERBS_LIBRARY=str(self.folder / "none.so"))
        self.assertEqual(CANNOT_PRELOAD, outcome.returncode)
        self.assertRegex(outcome.stderr, r"none\.so does not exist[\s\S]*what to do: ")
        (self.folder / "text.so").write_text("no ELF file")
        outcome = run(SOURCES / "softverbs", "true", GDRBENCH_SOFTVERBS_LIBRARY=str(self.folder / "text.so"))
        self.assertEqual(CANNOT_PRELOAD, outcome.returncode)
        self.assertIn("is not a library", outcome.stderr)


if __name__ == "__main__":
    main()
