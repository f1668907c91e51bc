#!/usr/bin/python3
"""The doctor: on a machine with little, on recorded ones, between two ends, and with what goes wrong on the way."""

import json
import os
import pathlib
import resource
import signal
import subprocess
import time
import unittest

from jsonschema import Draft202012Validator

from harness import (DONE, FAILED, INTERRUPTED, PEER_LOST, RDMA_DEVICES, REPOSITORY, SOFTVERBS, SOON_S, USAGE, TestCase, main)

MAKE_SNAPSHOT = os.environ.get("GDRBENCH_MAKE_SNAPSHOT",
                              str(REPOSITORY / "build" / "release" / "tests" / "synthetic" / "make_snapshot"))
SCHEMA = json.loads((REPOSITORY / "docs" / "doctor.schema.json").read_text(encoding="utf-8"))


class DoctorCase(TestCase):
    def snapshot_of(self, name):
        folder = self.folder / name
        subprocess.run([MAKE_SNAPSHOT, name, str(folder)], check=True, timeout=SOON_S)
        return folder

    def report(self, *arguments, status=None, **how):
        """The report, whose exit status is checked; without `status` this machine may have failures of its own."""
        outcome = self.run_program("doctor", "--json", *arguments, **how)
        self.assertIn(outcome.status, (DONE, FAILED) if status is None else (status,), outcome.out + outcome.err)
        document = json.loads(outcome.out)
        faults = [f"{list(fault.absolute_path)}: {fault.message}"
                  for fault in Draft202012Validator(SCHEMA).iter_errors(document)]
        self.assertEqual([], faults)
        self.assertEqual(outcome.status, document["exit_status"])
        return document

    @staticmethod
    def causes(end):
        return {f"{finding['check']}/{finding['cause']}" for finding in end["findings"] if finding["verdict"] != "ok"}


class ThisMachine(DoctorCase):
    def test_it_ends_cleanly_and_says_what_it_looked_at(self):
        document = self.report("--no-probes")
        self.assertEqual("this machine", document["ends"][0]["source"])
        if not RDMA_DEVICES:
            self.assertIn("gdr: not possible here", document["ends"][0]["summary"])

    def test_transfers_over_loopback_pass_on_tcp(self):
        for arguments in ([], ["--loopback"]):
            probes = {probe["what"]: probe["outcome"] for probe in self.report(*arguments)["ends"][0]["probes"]}
            for op in ("write", "read"):
                for direction in ("forward", "reverse"):
                    self.assertEqual("passed", probes[f"transfer tcp {op} {direction}"])

    @unittest.skipUnless(SOFTVERBS, "this build has no softverbs")
    def test_on_softverbs_host_memory_is_registered_and_moved_over_each_path(self):
        document = self.report("--fabric", "softverbs")
        probes = {probe["what"]: probe for probe in document["ends"][0]["probes"]}
        self.assertEqual("passed", probes["register host"]["outcome"])
        self.assertEqual("softverbs0", probes["register host"]["device"])
        for path in ("tcp", "rdma", "gdr"):
            for op in ("write", "read"):
                for direction in ("forward", "reverse"):
                    with self.subTest(path=path, op=op, direction=direction):
                        self.assertEqual("passed", probes[f"transfer {path} {op} {direction}"]["outcome"])

    @unittest.skipUnless(SOFTVERBS, "this build has no softverbs")
    def test_a_wrong_byte_is_a_failed_transfer_with_its_error(self):
        document = self.report("--fabric", "softverbs", "--check", "probe_transfer", status=FAILED,
                               faults="corrupt=1-")
        found = {finding["subject"]: finding for finding in document["ends"][0]["findings"]}
        self.assertEqual("ok", found["tcp"]["verdict"])
        for path in ("rdma", "gdr"):
            self.assertEqual("fail", found[path]["verdict"])
            self.assertNotEqual("", found[path]["evidence"][0]["value"])

    def test_the_text_says_what_was_found_in_a_form_for_people(self):
        outcome = self.run_program("doctor", "--no-probes")
        self.assertIn(outcome.status, (DONE, FAILED), outcome.err)
        self.assertRegex(outcome.out, r"\(this machine\): .*\n *gdr: ")
        self.assertNotIn("\033", outcome.out)


class Snapshots(DoctorCase):
    def test_a_recorded_machine_gives_its_findings_and_no_other(self):
        for name, cause in (("dgx", None), ("dgx_without_peermem", "peermem/not_loaded"),
                            ("dgx_whose_cuda_crashes", "driver_answers/crashed")):
            with self.subTest(name):
                status = FAILED if cause == "driver_answers/crashed" else DONE
                document = self.report("--snapshot", self.snapshot_of(name), status=status)
                self.assertEqual({cause} if cause else set(), self.causes(document["ends"][0]))

    def test_a_warning_is_a_failure_under_strict_only(self):
        folder = self.snapshot_of("dgx_whose_cuda_refuses")
        self.report("--snapshot", folder, status=DONE)
        self.report("--snapshot", folder, "--strict", status=FAILED)

    def test_only_the_checks_that_are_named_run(self):
        folder = self.snapshot_of("dgx_without_peermem")
        document = self.report("--snapshot", folder, "--check", "peermem,driver_answers")
        self.assertEqual({"peermem", "driver_answers"}, {f["check"] for f in document["ends"][0]["findings"]})

    def test_a_recording_of_a_recording_tells_the_same_and_says_what_it_holds(self):
        snapshot, again = self.snapshot_of("dgx_without_peermem"), self.folder / "again"
        outcome = self.run_program("doctor", "--snapshot", snapshot, "--record", again)
        self.assert_ends(outcome, DONE, f"recorded .*{again}")
        self.assertIn("Replaced by others of their kind", (again / "README").read_text(encoding="utf-8"))
        first, second = (self.report("--snapshot", folder)["ends"][0] for folder in (snapshot, again))
        self.assertEqual(self.causes(first), self.causes(second))
        self.assertEqual(first["summary"], second["summary"])

    def test_recording_this_machine_gives_its_verdicts_and_no_name_of_it(self):
        folder = self.folder / "recorded"
        live = self.report("--no-probes", "--record", folder)["ends"][0]
        recorded = self.report("--snapshot", folder)["ends"][0]
        self.assertEqual(live["findings"], recorded["findings"])
        host = os.uname().nodename.encode()
        addresses = {pathlib.Path(f"/sys/class/net/{name}/address").read_bytes().strip()
                     for name in os.listdir("/sys/class/net") if os.path.exists(f"/sys/class/net/{name}/address")}
        secrets = {secret for secret in addresses if secret.strip(b"0:")} | ({host} if len(host) > 3 else set())
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
                for secret in secrets:
                    self.assertNotIn(secret, content, path)

    def test_signals_while_a_recording_is_written_leave_nothing_in_part(self):
        library = os.environ.get("GDRBENCH_SIGNAL_ON_MKDIR",
                                 str(REPOSITORY / "build" / "release" / "tests" / "integration" / "libsignal_on_mkdir.so"))
        snapshot = self.snapshot_of("dgx")
        for signals, statuses in (([signal.SIGINT], {INTERRUPTED}), ([signal.SIGTERM], {INTERRUPTED}),
                                  ([signal.SIGINT, signal.SIGTERM], {INTERRUPTED, -signal.SIGINT, -signal.SIGTERM})):
            with self.subTest(signals):
                folder = self.folder / "-".join(str(int(number)) for number in signals)
                outcome = self.run_program("doctor", "--snapshot", snapshot, "--record", folder, preload=library,
                                           signals=signals)
                self.assertIn(outcome.status, statuses, outcome.out + outcome.err)
                self.assertEqual([], [path.name for path in self.folder.iterdir() if ".partial-" in path.name])
                if folder.exists():
                    self.report("--snapshot", folder, status=DONE)

    def test_broken_answers_are_told_and_the_files_still_looked_at(self):
        folder = self.snapshot_of("dgx_without_peermem")
        (folder / "answers.json").write_text("{a: 1,}", encoding="utf-8")
        outcome = self.run_program("doctor", "--snapshot", folder)
        self.assertIn(outcome.status, (DONE, FAILED), outcome.err)
        self.assertRegex(outcome.err, r"answers\.json: .*line 1, column 2")
        self.assertIn("peermem", outcome.out)


class Usage(DoctorCase):
    def refuse(self, *arguments, names=()):
        self.assert_ends(self.run_program("doctor", *arguments, seconds=SOON_S), USAGE, *names)

    def test_what_does_not_go_together_or_is_not_there_is_refused(self):
        snapshot = self.snapshot_of("dgx")
        piped = self.snapshot_of("two_socket")
        os.mkfifo(piped / "sys" / "pipe")
        leading_out = self.snapshot_of("grace")
        (leading_out / "proc" / "cpuinfo").unlink()
        (leading_out / "proc" / "cpuinfo").symlink_to("/etc/hostname")
        dangling = self.folder / "dangling"
        dangling.symlink_to("nosuchfolder")
        for arguments, names in (
                (["--snapshot", piped], ["sys/pipe", "no recording"]),
                (["--snapshot", leading_out], ["proc/cpuinfo", "leads out"]),
                (["--snapshot", ""], ["--snapshot", "empty"]),
                (["--record", ""], ["--record", "empty"]),
                (["--size", "0"], ["--size 0"]),
                (["--gpu", "99"], ["--gpu 99", "numbered from 0"]),
                (["--device", "mlx5_77"], ["'mlx5_77'", "no such RDMA device"]),
                (["--check", "ends"], ["'ends'", "HOST"]),
                (["--benchmark_filter=x"], ["--benchmark_filter=x"]),
                (["--check", "nosuch"], ["'nosuch'", "peermem", "probe_transfer"]),
                (["--size", "5Q"], ["'5Q'"]),
                (["--fabric", "nosuch"], ["'nosuch'", "softverbs"]),
                (["--snapshot", self.folder / "nosuch"], ["nosuch", "--record"]),
                (["--snapshot", self.folder], ["neither sys nor proc", "--record"]),
                (["--snapshot", snapshot, "127.0.0.1"], ["--snapshot", "no other end"]),
                (["--snapshot", snapshot, "--loopback"], ["--snapshot", "no other end"]),
                (["--loopback", "127.0.0.1"], ["--loopback", "127.0.0.1"]),
                (["--loopback", "--no-probes"], ["--loopback", "--no-probes"]),
                (["--port", "70000", "127.0.0.1"], ["70000", "1 to 65535"]),
                (["--port", "7471"], ["--port", "HOST"]),
                (["--port", "0", "127.0.0.1"], ["--port 0", "1 to 65535"]),
                (["--port", "2", "127.0.0.1:1"], ["--port 2", "127.0.0.1:1"]),
                (["--check", "acs", "127.0.0.1", "--loopback"], ["--loopback", "127.0.0.1"]),
                (["--record", snapshot], [str(snapshot), "not an empty folder"]),
                (["--record", snapshot / "new", "--snapshot", snapshot], ["new", "inside the snapshot"]),
                (["--record", dangling], [str(dangling), "dangling"]),
                (["--nosuch"], ["--nosuch"])):
            with self.subTest(arguments):
                self.refuse(*arguments, names=names)

    def test_a_full_disk_is_an_error_that_names_the_file(self):
        def small_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
        outcome = self.run_program("doctor", "--snapshot", self.snapshot_of("dgx"), "--record", self.folder / "recorded",
                                   preexec=small_files)
        self.assert_ends(outcome, FAILED, r"writing .*recorded/.*EFBIG", "name a folder")
        self.assertIn("gdr:", outcome.out)  # what was found is told all the same
        self.assertEqual([], [path.name for path in self.folder.iterdir() if path.name.startswith("recorded")])

    def test_a_full_standard_output_is_an_error(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            outcome = self.start("doctor", "--snapshot", self.snapshot_of("dgx"), stdout=full).finish(SOON_S)
        self.assert_ends(outcome, FAILED, "standard output", "ENOSPC")

    def test_checks_are_listed_and_explained_as_in_the_documentation(self):
        listed = self.run_program("doctor", "--list")
        self.assert_ends(listed, DONE)
        names = [line.split()[0] for line in listed.out.splitlines()]
        self.assertIn("peermem", names)
        explained = self.run_program("doctor", "--explain")
        self.assert_ends(explained, DONE)
        self.assertEqual((REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8"), explained.out)
        for name in names:
            self.assertIn(f"\n### {name}\n", explained.out)


class BothEnds(DoctorCase):
    def test_both_reports_are_shown_and_what_is_between_them(self):
        server = self.serve()
        document = self.report(server.address)
        self.assertEqual(["this machine", f"responder {server.address}"], [end["source"] for end in document["ends"]])
        here, there = document["ends"]
        self.assertEqual(self.causes(here), self.causes(there))
        self.assertIn(("probe_transfer", "tcp", "ok"),
                      {(f["check"], f["subject"], f["verdict"]) for f in document["between"]})
        server.wait_for(r"left", count=2)
        self.assert_serves(server)

    @unittest.skipUnless(SOFTVERBS, "this build has no softverbs")
    def test_on_softverbs_data_goes_over_all_paths_between_them(self):
        server = self.serve("--fabric", "softverbs")
        document = self.report(server.address, "--fabric", "softverbs")
        self.assertLessEqual({("tcp", "ok"), ("rdma", "ok"), ("gdr", "ok")},
                             {(f["subject"], f["verdict"]) for f in document["between"]})
        for end in document["ends"]:
            self.assertEqual(["passed"], [p["outcome"] for p in end["probes"] if p["what"] == "register host"])

    def test_a_server_with_a_key_tells_nothing_without_it(self):
        server = self.serve(key="secret")
        self.assert_ends(self.run_program("doctor", server.address), USAGE, "key")
        self.report(server.address, "--no-probes", key="secret")

    def test_a_server_that_is_killed_is_named_and_what_was_found_is_shown(self):
        server = self.serve()
        client = self.start("doctor", server.address)
        server.wait_for("examines this machine")
        server.wait_for(r"bandwidth/tcp")
        server.kill()
        outcome = client.finish()
        if outcome.status == PEER_LOST:  # else it was done before
            self.assert_ends(outcome, PEER_LOST, server.address)
            self.assertIn("(this machine)", outcome.out)
        else:
            self.assertIn(outcome.status, (DONE, FAILED))

    def test_a_server_killed_while_it_examines_itself_ends_the_doctor_soon(self):
        server = self.serve()
        client = self.start("doctor", server.address)
        server.wait_for("examines this machine")
        server.signal(signal.SIGKILL)
        began = time.monotonic()
        outcome = client.finish()
        self.assertLess(time.monotonic() - began, SOON_S)
        self.assert_ends(outcome, PEER_LOST, server.address)

    def test_no_server_at_all_is_an_error_that_names_the_address(self):
        server = self.serve()
        server.kill()
        self.assert_ends(self.run_program("doctor", server.address), FAILED, server.address)


if __name__ == "__main__":
    main()
