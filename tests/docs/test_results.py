#!/usr/bin/python3
"""docs/results: every file is sound, small, of a clean commit, and named by the page about them."""

import json
import lzma
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
RESULTS = REPOSITORY / "docs" / "results"
PAGE = RESULTS / "README.md"
CHECK_RESULT = REPOSITORY / "scripts" / "check-result"
COMPRESSED = sorted(RESULTS.rglob("*.json.xz"))
LARGEST_FILE, LARGEST_SUM = 100_000, 500_000  # bytes


class Results(unittest.TestCase):
    def test_compressed_files_pass_check_result(self):
        self.assertTrue(COMPRESSED)
        done = subprocess.run([sys.executable, CHECK_RESULT, "--quiet", *COMPRESSED], capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_check_result_refuses_what_is_not_compressed_json(self):
        whole = lzma.compress(b"{}")
        for content, fault in ((b"{}", "not what xz writes"), (whole[:-8], "not what xz writes"),
                               (lzma.compress(b"{"), "not JSON"), (whole, "is a required property")):
            with self.subTest(fault=fault), tempfile.NamedTemporaryFile(suffix=".json.xz") as file:
                file.write(content)
                file.flush()
                done = subprocess.run([sys.executable, CHECK_RESULT, file.name], capture_output=True, text=True,
                                      timeout=60, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn(fault, done.stderr)

    def test_commits_are_clean_and_runs_complete(self):
        for path in COMPRESSED:
            with self.subTest(path=path.name):
                result = json.loads(lzma.decompress(path.read_bytes()))["gdrbench"]
                self.assertRegex(result["commit"], r"^[0-9a-f]{12,40}$")
                self.assertTrue(result["complete"], result["incomplete_reason"])

    def test_json_is_there_only_compressed_and_little_of_it(self):
        self.assertEqual([], [path for path in RESULTS.rglob("*.json")])
        sizes = {path.name: path.stat().st_size for path in RESULTS.rglob("*") if path.is_file()}
        self.assertEqual({}, {name: size for name, size in sizes.items() if size > LARGEST_FILE})
        self.assertLess(sum(sizes.values()), LARGEST_SUM)

    def test_the_page_names_every_file_and_no_other(self):
        named = {(RESULTS / link).resolve() for link in re.findall(r"\]\(([^):#]+)\)", PAGE.read_text(encoding="utf-8"))}
        self.assertEqual(set(), {path for path in named if not path.exists()})
        files = {path for path in RESULTS.rglob("*") if path.is_file() and path != PAGE}
        self.assertEqual(set(), files - named)


if __name__ == "__main__":
    unittest.main()
