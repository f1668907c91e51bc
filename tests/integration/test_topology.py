#!/usr/bin/python3
"""`gdrbench topology` on synthetic machines and on this one: text, JSON by its schema, hwloc's XML, pictures, bad usage."""

import json
import os
import shutil
import subprocess
import xml.etree.ElementTree

from harness import (DONE, PATIENCE_S, PROGRAM, QUICK, REPOSITORY, SOON_S, UNAVAILABLE, USAGE, TestCase, check_result,
                     main)

try:
    from jsonschema import Draft202012Validator
except ImportError:
    Draft202012Validator = None

MAKE_SNAPSHOT = os.environ.get("GDRBENCH_MAKE_SNAPSHOT",
                              str(REPOSITORY / "build" / "release" / "tests" / "synthetic" / "make_snapshot"))
SCHEMA = REPOSITORY / "docs" / "topology.schema.json"


class Topology(TestCase):
    def show(self, *arguments, status=DONE, names=(), **how):
        outcome = self.run_program("topology", *arguments, seconds=SOON_S, **how)
        self.assert_ends(outcome, status, *names)
        return outcome.out

    def machine(self, name):
        folder = self.folder / name
        folder.mkdir()
        subprocess.run([MAKE_SNAPSHOT, name, str(folder)], check=True, timeout=PATIENCE_S)
        return folder

    def document(self, *arguments):
        """The JSON document, which is as the schema says."""
        document = json.loads(self.show("--json", *arguments))
        if Draft202012Validator:
            faults = [f"{'/'.join(map(str, fault.absolute_path))}: {fault.message}"
                      for fault in Draft202012Validator(json.loads(SCHEMA.read_text())).iter_errors(document)]
            self.assertEqual([], faults)
        return document


class SyntheticMachine(Topology):
    def test_text_shows_devices_matrix_legend_and_best_pairs(self):
        out = self.show("--snapshot", self.machine("dgx"))
        for pattern in (r"2 GPUs · 2 NICs · 0 NVMe devices · 2 NUMA nodes · 8 cores",
                        r"GPU1 +0000:bb:00\.0 .* nvidia +node 1 +cores 4-7 +link 32\.0 GT/s x16",
                        r"mlx5_1 port 1 +ACTIVE +Ethernet +400 Gb/s +eth1",
                        r"(?m)^ +GPU0 +GPU1 +NIC0 +NIC1 +node0 +node1 +cores$",
                        r"(?m)^ +NIC1 +SYS +PIX +SYS +X +SYS +NODE +4-7$",
                        r"PHB +a host bridge",
                        r"GPU1 +NIC1 mlx5_1 port 1 +PIX +50\.0 GB/s +cores 4-7"):
            self.assertRegex(out, pattern)

    def test_json_holds_the_same(self):
        document = self.document("--snapshot", self.machine("dgx"))
        self.assertEqual(["0000:1b:00.0", "0000:bb:00.0"], [gpu["address"] for gpu in document["gpus"]])
        self.assertEqual({"from": "GPU1", "to": "NIC1", "class": "PIX"},
                         {key: value for key, value in document["distances"][4].items()
                          if key in ("from", "to", "class")})
        self.assertEqual(["0000:bb:00.0", "0000:b9:01.0", "0000:b9:02.0", "0000:bc:00.0"],
                         document["distances"][4]["hops"])
        self.assertEqual(["mlx5_0", "mlx5_1"], [pair["device"] for pair in document["best_pairs"]])
        self.assertEqual("4-7", document["best_pairs"][1]["cores"])

    def test_sixteen_gpus_with_equal_choices_get_sixteen_nics(self):
        document = self.document("--snapshot", self.machine("large"))
        self.assertEqual(16, len({pair["nic"] for pair in document["best_pairs"]}))
        self.assertEqual({"PIX"}, {pair["class"] for pair in document["best_pairs"]})

    def test_xml_is_what_hwloc_reads_and_a_snapshot_can_be_made_of_it(self):
        exported = self.folder / "topology.xml"
        self.show("--snapshot", self.machine("dgx"), "--xml", exported)
        self.assertEqual("topology", xml.etree.ElementTree.parse(exported).getroot().tag)
        recorded = self.folder / "recorded"
        recorded.mkdir()
        exported.rename(recorded / "topology.xml")
        document = self.document("--snapshot", recorded)
        self.assertEqual(["0000:1b:00.0", "0000:bb:00.0"], [gpu["address"] for gpu in document["gpus"]])
        self.assertEqual(["UNKNOWN"], sorted({pair["class"] for pair in document["distances"]}))

    def test_without_sysfs_what_only_it_tells_is_unknown_and_not_absent(self):
        recorded = self.folder / "recorded"
        recorded.mkdir()
        self.show("--snapshot", self.machine("virtual_machine"), "--xml", recorded / "topology.xml")
        out = self.show("--snapshot", recorded)
        self.assertRegex(out, r"GPU0 +0000:00:05\.0 .* driver unknown +node 0 +cores 0-3 +link unknown")
        self.assertRegex(out, r"(?m)^  GPU0 +unknown$")
        for word in ("no driver", "hidden", "/sys/class/infiniband"):
            self.assertNotIn(word, out)
        document = self.document("--snapshot", recorded)
        self.assertEqual([0, 0], [device["numa_node"] for device in document["gpus"] + document["nics"]])
        self.assertIsNone(document["gpus"][0]["driver"])

    def test_odd_files_end_in_no_crash(self):
        folder = self.machine("dgx")
        for name, content in {"numa_node": b"\xff\n", "current_link_speed": b"1e400 GT/s\n", "class": b"",
                              "local_cpus": b"zz\n", "local_cpulist": b"9-1,,\n"}.items():
            for path in folder.glob(f"sys/devices/pci*/**/{name}"):
                path.write_bytes(content)
        self.document("--snapshot", folder)
        for content in ("<topology", ""):
            (folder / "topology.xml").write_text(content)
            self.show("--snapshot", folder)


class ThisMachine(Topology):
    def test_it_can_be_shown_whatever_it_has(self):
        self.assertRegex(self.show(), r"NUMA node")
        document = self.document()
        if not document["gpus"]:
            self.assertEqual([], document["best_pairs"])
            self.assertIn("No NVIDIA GPU", self.show())

    def test_software_nic_is_listed(self):
        library = os.environ.get("GDRBENCH_SOFTVERBS_LIBRARY")
        if not library:
            self.skipTest("this build has no software NIC")
        self.assertRegex(self.show(preload=library), r"softverbs0 port 1 +softverbs +ACTIVE")


class Pictures(Topology):
    def draw(self, name, path):
        """With this PATH."""
        environment = dict(os.environ, PATH=path)
        return subprocess.run([PROGRAM, "topology", "--picture", str(self.folder / name)], env=environment, text=True,
                              capture_output=True, timeout=PATIENCE_S, check=False)

    def test_a_picture_is_drawn_by_lstopo(self):
        if not shutil.which("lstopo"):
            self.skipTest("lstopo is not installed")
        machine = self.machine("dgx")
        for ending, start in {"svg": "<?xml", "txt": "┌"}.items():
            picture = self.folder / f"machine.{ending}"
            self.show("--snapshot", machine, "--picture", picture)
            self.assertTrue(picture.read_text().lstrip().startswith(start), picture.read_text()[:200])

    def test_without_lstopo_the_package_is_named_and_the_rest_is_shown(self):
        outcome = self.draw("machine.svg", str(self.folder / "nothing"))
        self.assertEqual(UNAVAILABLE, outcome.returncode, outcome.stderr)
        self.assertRegex(outcome.stderr, r"lstopo.*install hwloc .* or hwloc-nox")
        self.assertIn("NUMA nodes", outcome.stdout)
        self.assertEqual([], list(self.folder.iterdir()))

    def test_a_format_that_lstopo_lacks_names_the_package(self):
        program = self.folder / "bin" / "lstopo"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho 'file format not supported' >&2\nexit 1\n")
        program.chmod(0o755)
        outcome = self.draw("machine.pdf", f"{program.parent}:{os.environ['PATH']}")
        self.assertEqual(UNAVAILABLE, outcome.returncode, outcome.stderr)
        self.assertRegex(outcome.stderr, r"cannot write \.pdf .*install hwloc")
        self.assertFalse((self.folder / "machine.pdf").exists())


class Binding(TestCase):
    def proofs(self, *arguments, **how):
        result = self.folder / "result.json"
        outcome = self.run_program("latency", "--loopback", "--paths", "tcp", "--sizes", 8, "--out", result, *QUICK,
                                   *arguments, **how)
        self.assert_ends(outcome, DONE)
        self.assertEqual("", check_result(result))
        proof = json.loads(result.read_text())["gdrbench"]["cases"][0]["proof"]
        self.assertEqual(2, len(proof))
        return outcome.out, [rank["binding"] for rank in proof]

    def test_both_ends_record_their_cores_and_why(self):
        _, ends = self.proofs()
        for end in ends:
            self.assertRegex(end["cores"], r"^[0-9]")
            self.assertRegex(end["why"], "^(next to|not bound:) .")

    def test_the_responder_is_told_not_to_bind(self):
        out, ends = self.proofs("--bind", "none")
        self.assertEqual(["not bound: --bind none"] * 2, [end["why"] for end in ends])
        self.assertRegex(out, r"(?m)^not bound to cores: --bind none$")

    def test_cores_that_the_user_chose_are_kept(self):
        first = min(os.sched_getaffinity(0))
        _, ends = self.proofs(preexec=lambda: os.sched_setaffinity(0, {first}))
        self.assertEqual([str(first)] * 2, [end["cores"] for end in ends])
        for end in ends:
            self.assertRegex(end["why"], "^not bound:")


class Usage(Topology):
    def test_bad_usage_is_refused_by_name(self):
        (self.folder / "empty").mkdir()
        (self.folder / "piped" / "proc").mkdir(parents=True)
        os.mkfifo(self.folder / "piped" / "proc" / "cpuinfo")
        (self.folder / "damaged").mkdir()
        (self.folder / "damaged" / "topology.xml").write_text("<topology>", encoding="utf-8")
        for arguments, names in (
                (["--picture", self.folder / "a.jpg"], [r"--picture '.*a\.jpg'", r"\.svg, \.png, \.pdf or \.txt"]),
                (["--picture", "/proc/a.svg"], [r"/proc/a\.svg"]),
                (["--xml", "/proc/a.xml"], [r"/proc/a\.xml"]),
                (["--xml", self.folder / "a.svg", "--picture", self.folder / "a.svg"], ["two results"]),
                (["--snapshot", self.folder / "nosuch"], ["--snapshot '.*nosuch'", "No such file or directory"]),
                (["--snapshot", self.folder / "empty"], ["--snapshot '.*empty'", "doctor --record"]),
                (["--snapshot", self.folder / "piped"], ["proc/cpuinfo", "no recording"]),
                (["--snapshot", self.folder / "damaged"], ["topology.xml"]),
                (["--snapshot", ""], ["--snapshot", "empty"]),
                (["--jsonn"], ["--jsonn"]),
                (["--benchmark_filter=x"], ["--benchmark_filter=x", "measures nothing"]),
                (["host"], ["host"])):
            with self.subTest(arguments=arguments):
                self.show(*arguments, status=USAGE, names=names)
        self.assertEqual([], [path.name for path in self.folder.iterdir() if path.name.startswith("a.")])


if __name__ == "__main__":
    main()
