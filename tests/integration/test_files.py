#!/usr/bin/python3
"""Result files: complete or absent, valid, readable by Google Benchmark's own tools; and the table in any case."""

import csv
import importlib.util
import json
import os
import pathlib
import resource
import subprocess
import sys
import unittest

from harness import (DONE, FAILED, PATIENCE_S, QUICK, SOON_S, UNAVAILABLE, USAGE, TestCase, check_result, main)

COMPARE_PY = pathlib.Path("/usr/share/benchmark/compare.py")  # of libbenchmark-tools
TABLE = r"latency[\s\S]*tcp +send +8 B "
SMALL = ["latency", "--loopback", "--paths", "tcp", "--sizes", "8", *QUICK]


def missing_for_compare():
    if not COMPARE_PY.exists():
        return f"{COMPARE_PY} is not there: install libbenchmark-tools"
    absent = [name for name in ("numpy", "scipy") if importlib.util.find_spec(name) is None]
    return f"python3-{absent[0]} is not installed" if absent else ""


class Files(TestCase):
    def mount_tmpfs(self, options):
        """A small file system of its own, for as long as the test runs."""
        if os.geteuid() != 0:
            self.skipTest("mounting a small file system needs root")
        place = self.folder / "mounted"
        place.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "gdrbench-test", str(place)],
                                 stderr=subprocess.PIPE, text=True, timeout=SOON_S, check=False)
        if mounted.returncode != 0:
            self.skipTest(f"mounting a small file system is refused here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", str(place)], timeout=SOON_S, check=True)
        return place

    def test_a_missing_folder_is_made_and_the_file_is_good(self):
        file = self.folder / "new" / "folder" / "result.json"
        outcome = self.run_program(*SMALL, "--out", file)
        self.assert_ends(outcome, DONE)
        self.assertRegex(outcome.out, TABLE)
        self.assertIn(f"result file {file}", outcome.out)
        self.assertEqual("", check_result(file))
        self.assertEqual(["result.json"], os.listdir(file.parent))
        own = json.loads(file.read_text())["gdrbench"]
        self.assertIs(own["complete"], True)
        self.assertIsNone(own["incomplete_reason"])
        self.assertEqual(f"gdrbench {' '.join(SMALL)} --out {file}", own["command"])

    def test_the_file_of_every_command_is_good(self):
        for command in ("compare", "latency", "bandwidth"):
            with self.subTest(command):
                file = self.folder / f"{command}.json"
                self.assert_ends(self.run_program(command, "--loopback", "--paths", "tcp,tcp_wire", "--sizes", "64,64k",
                                                  "--completion", "event", "--benchmark_repetitions=3",
                                                  "--benchmark_min_time=0.001", "--out", file), DONE)
                self.assertEqual("", check_result(file))
                own = json.loads(file.read_text())["gdrbench"]
                self.assertEqual([3] * len(own["cases"]), [len(case["repetitions"]) for case in own["cases"]])

    def test_an_older_file_is_replaced_in_one_step_and_kept_until_then(self):
        file = self.folder / "result.json"
        file.write_text("older")
        self.assert_ends(self.run_program(*SMALL, "--benchmark_filter=nothing", "--out", file), USAGE)
        self.assertEqual("older", file.read_text())
        self.assertEqual(["result.json"], os.listdir(self.folder))
        self.assert_ends(self.run_program(*SMALL, "--out", file), DONE)
        self.assertEqual("", check_result(file))

    def test_a_place_that_cannot_be_written_is_refused_before_anything_is_measured(self):
        (self.folder / "file").touch()
        places = [(self.folder / "file" / "result.json", "ENOTDIR", "file and not a folder"),
                  (self.folder, "EISDIR", "folder"),
                  (f"{self.folder}/", "EISDIR", "folder"),
                  (self.folder / ("x" * 300), "ENAMETOOLONG", "shorter name"),
                  (pathlib.Path("/proc/gdrbench-test/result.json"), "ENOENT|EACCES|EPERM", "elsewhere|folder")]
        if os.geteuid() != 0:
            locked = self.folder / "locked"
            locked.mkdir(mode=0o555)
            places.append((locked / "result.json", "EACCES", "may write to"))
        for place, error, remedy in places:
            for flag in ("--out", "--samples", "--benchmark_out"):
                with self.subTest(place=str(place), flag=flag):
                    given = [f"{flag}={place}"] if flag.startswith("--benchmark") else [flag, place]
                    outcome = self.run_program(*SMALL, *given, seconds=SOON_S)
                    self.assert_ends(outcome, USAGE, f"writing '{place}'", error, remedy)
                    self.assertEqual("", outcome.out)
        self.assertEqual({"file", "locked"}, set(os.listdir(self.folder)) | {"locked"})

    def test_a_read_only_file_system_is_refused_before_anything_is_measured(self):
        place = self.mount_tmpfs("size=64k,ro")
        outcome = self.run_program(*SMALL, "--out", place / "result.json", seconds=SOON_S)
        self.assert_ends(outcome, USAGE, f"writing '{place}/result.json'", "EROFS", "read-only")
        self.assertEqual("", outcome.out)

    def test_a_disk_that_is_full_at_the_end_is_named_and_the_table_is_there(self):
        place = self.mount_tmpfs("size=4k")
        samples = self.folder / "samples.csv"
        outcome = self.run_program(*SMALL, "--out", place / "result.json", "--samples", samples)
        self.assert_ends(outcome, FAILED, f"writing '{place}/result.json'", "ENOSPC", "make room")
        self.assertRegex(outcome.out, TABLE)
        self.assertNotIn("result file", outcome.out)
        self.assertEqual([], os.listdir(place))
        self.assertIn("latency_ns", samples.read_text())  # the other file is written all the same

    def test_samples_that_do_not_fit_do_not_cost_the_result_file(self):
        result = self.folder / "result.json"
        outcome = self.run_program(*SMALL, "--out", result, "--samples", "/dev/full")
        self.assert_ends(outcome, FAILED, "writing '/dev/full'", "ENOSPC", "make room")
        self.assertRegex(outcome.out, TABLE)
        self.assertEqual("", check_result(result))

    def test_a_device_that_takes_nothing_is_named_and_the_table_is_there(self):
        outcome = self.run_program(*SMALL, "--out", "/dev/full")
        self.assert_ends(outcome, FAILED, "writing '/dev/full'", "ENOSPC", "make room")
        self.assertRegex(outcome.out, TABLE)

    def test_a_limit_on_file_sizes_is_named_and_leaves_no_file(self):
        result = self.folder / "result.json"
        outcome = self.run_program(*SMALL, "--out", result,
                                   preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        self.assert_ends(outcome, FAILED, f"writing '{result}'", "EFBIG", "ulimit -f")
        self.assertRegex(outcome.out, TABLE)
        self.assertEqual([], os.listdir(self.folder))

    def test_results_are_kept_where_standard_output_is_full_or_gone(self):
        result = self.folder / "result.json"
        with open("/dev/full", "w", encoding="ascii") as full:
            self.assert_ends(self.run_program(*SMALL, "--out", result, stdout=full), FAILED, "standard output|ENOSPC")
        self.assertEqual("", check_result(result))
        result.unlink()
        reader, writer = os.pipe()
        os.close(reader)
        try:
            self.run_program(*SMALL, "--out", result, stdout=writer)
        finally:
            os.close(writer)
        self.assertEqual("", check_result(result))

    def test_a_time_budget_that_is_used_up_keeps_what_was_measured_and_says_so(self):
        result = self.folder / "result.json"
        outcome = self.run_program("latency", "--loopback", "--paths", "tcp", "--completion", "event", "--sizes",
                                   "8:1M:x2", "--time-budget", "0.1", "--out", result)
        self.assert_ends(outcome, DONE)
        self.assertIn("--time-budget", outcome.out)
        self.assertEqual("", check_result(result))
        own = json.loads(result.read_text())["gdrbench"]
        self.assertIs(own["complete"], False)
        self.assertIn("--time-budget", own["incomplete_reason"])

    def test_samples_are_csv_with_every_sample_of_every_repetition(self):
        samples, result = self.folder / "samples.csv", self.folder / "result.json"
        self.assert_ends(self.run_program("latency", "--loopback", "--paths", "tcp,tcp_wire", "--sizes", "8,4k",
                                          "--completion", "event", "--benchmark_repetitions=2",
                                          "--benchmark_min_time=0.001", "--samples", samples, "--out", result), DONE)
        with samples.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(["suite", "path", "op", "memory", "completion", "size_bytes", "repetition", "index",
                          "latency_ns"], list(rows[0]))
        for case in json.loads(result.read_text())["gdrbench"]["cases"]:
            for number, repetition in enumerate(case["repetitions"]):
                mine = [row for row in rows if row["path"] == case["path"] and row["repetition"] == str(number)
                        and row["size_bytes"] == str(case["size_bytes"])]
                self.assertEqual(list(map(str, range(repetition["iterations"]))), [row["index"] for row in mine])
                times = [int(row["latency_ns"]) / 1000 for row in mine]
                self.assertAlmostEqual(repetition["latency_us"]["min"], min(times), delta=0.001)
                self.assertAlmostEqual(repetition["latency_us"]["max"], max(times), delta=0.001)

    def test_a_size_that_no_end_has_memory_for_is_refused_with_both_numbers(self):
        server = self.serve("--max-memory", "16M")
        result = self.folder / "result.json"
        outcome = self.run_program("latency", server.address, "--paths", "tcp", "--sizes", "8,32M", *QUICK, "--out",
                                   result)
        self.assert_ends(outcome, DONE)
        self.assertRegex(outcome.out, TABLE)
        own = json.loads(result.read_text())["gdrbench"]
        self.assertRegex(own["skipped"][0]["reason"], r"32 MiB|64 MiB")
        self.assertIn("limit is 16 MiB", own["skipped"][0]["reason"])
        self.assert_ends(self.run_program("latency", server.address, "--paths", "tcp", "--sizes", "32M", *QUICK),
                         UNAVAILABLE, "limit is 16 MiB", "--max-memory")


@unittest.skipIf(missing_for_compare(), missing_for_compare())
class GoogleBenchmarkTools(TestCase):
    def measure(self, name, sizes, *flags):
        file = self.folder / name
        self.assert_ends(self.run_program("latency", "--loopback", "--paths", "tcp", "--completion", "event", "--sizes",
                                          sizes, "--benchmark_repetitions=2", *flags, "--out", file), DONE)
        return file

    def compare(self, old, new):
        compared = subprocess.run([sys.executable, str(COMPARE_PY), "--no-color", "benchmarks", str(old), str(new)],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S,
                                  check=False)
        self.assertEqual((0, ""), (compared.returncode, compared.stderr))
        return compared.stdout

    def test_compare_py_reads_two_of_our_files(self):
        quick = "--benchmark_min_time=50x"  # the iterations are part of the library's names
        text = self.compare(self.measure("a.json", "8,4k", quick), self.measure("b.json", "8,4k", quick))
        for size in (8, 4096):
            self.assertRegex(text, rf"latency/tcp/send/{size}/event\S* +[+-]\d")

    def test_compare_py_matches_the_cases_of_files_with_other_sizes_besides(self):
        quick = "--benchmark_min_time=50x"
        text = self.compare(self.measure("a.json", "8,64", quick), self.measure("b.json", "8", quick))
        self.assertRegex(text, r"latency/tcp/send/8/event\S* +[+-]\d")

    def test_benchmark_out_holds_all_cases_as_the_library_writes_them(self):
        plain = self.folder / "plain.json"
        result = self.measure("a.json", "8,64", "--benchmark_min_time=0.001", f"--benchmark_out={plain}")
        whole = json.loads(result.read_text())
        self.assertEqual({"context": whole["context"], "benchmarks": whole["benchmarks"]},
                         json.loads(plain.read_text()))
        self.compare(plain, result)


if __name__ == "__main__":
    main()
