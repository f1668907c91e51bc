#!/usr/bin/python3
"""Bad usage ends with status 2 and a text that names the value and what is accepted."""

import os

from harness import DONE, FAILED, PATIENCE_S, QUICK, SOFTVERBS, SOON_S, UNAVAILABLE, USAGE, TestCase, main


class Usage(TestCase):
    def refuse(self, *arguments, names=()):
        outcome = self.run_program(*arguments, seconds=SOON_S)
        self.assert_ends(outcome, USAGE, *names)

    def test_a_wrong_size_is_refused_with_its_place_and_what_is_accepted(self):
        digits = r"use digits with an optional k, M, G or T"
        for text, names in {
                "5Q": [r"'5Q'", r"unexpected 'Q' at position 2", digits],
                "-1": [r"'-1'", r"unexpected '-' at position 1", digits],
                "0": [r"'0'", r"start at 1", digits],
                "18446744073709551616": [r"'18446744073709551616'", r"above 18446744073709551615", digits],
                "8:64:x1": [r"'8:64:x1'", r"at least 2, found 1 at position 7", r"from:to:xFACTOR"],
                "64:8:x2": [r"'64:8:x2'", r"runs down from 64 to 8", r"from:to:xFACTOR"],
                "8,,64": [r"'8,,64'", r"unexpected ',' at position 3", digits],
                "1e3": [r"'1e3'", r"unexpected 'e' at position 2", digits]}.items():
            with self.subTest(sizes=text):
                self.refuse("latency", "--loopback", "--sizes", text, names=names)

    def test_a_wrong_footprint_chunk_or_memory_limit_is_refused_like_a_size(self):
        for arguments in (["bandwidth", "--loopback", "--footprint"], ["latency", "--loopback", "--chunk"],
                          ["serve", "--port", "0", "--max-memory"]):
            for text in ("5Q", "-1"):
                with self.subTest(flag=arguments[-1], size=text):
                    self.refuse(*arguments, text, names=[f"'{text}'", "use digits"])

    def test_an_unknown_name_is_refused_with_the_names_that_exist(self):
        for flag, accepted in {
                "--paths": "tcp, rdma, gdr, p2p, tcp_wire, rdma_wire",
                "--require": "tcp, rdma, gdr, p2p, tcp_wire, rdma_wire",
                "--op": "send, write, write_imm, read",
                "--completion": "poll, event",
                "--memory": "host, cuda, cuda_vmm",
                "--fabric": "auto, hardware, soft-roce, softverbs",
                "--staging": "auto, pipelined, plain, pageable",
                "--staging-engine": "auto, copy_engine, kernel, gdrcopy",
                "--connect": "control, rdma_cm",
                "--bind": "auto, none",
                "--registration": "auto, dmabuf, peermem"}.items():
            for text in ("nosuch", "tcp,nosuch") if flag == "--paths" else ("nosuch",):
                with self.subTest(flag=flag, text=text):
                    unknown = text.split(",")[-1]
                    self.refuse("latency", "--loopback", flag, text, names=[f"'{unknown}'", accepted])
        self.refuse("serve", "--fabric", "nosuch", names=["'nosuch'", "hardware, soft-roce, softverbs"])
        self.refuse("overlap", "--loopback", "--load", "nosuch", names=["'nosuch'", "none, compute, memory"])
        self.refuse("bandwidth", "--loopback", "--direction", "up", names=["'up'", "forward, reverse, both"])

    def test_what_does_not_go_with_a_kind_of_staging_is_refused(self):
        for flags in (["--chunk", "64k"], ["--staging-depth", "3"], ["--staging-streams", "2"]):
            self.refuse("latency", "--loopback", "--staging", "plain", *flags, names=["--staging plain", flags[0]])
        self.refuse("latency", "--loopback", "--staging", "pageable", "--staging-engine", "kernel",
                    names=["--staging-engine kernel", "pageable"])

    def test_what_needs_gpu_memory_is_not_replaced_in_host_memory(self):
        for path, flags in {"tcp": ["--staging-engine", "kernel"], "gdr": ["--registration", "dmabuf"]}.items():
            outcome = self.run_program("latency", "--loopback", "--memory", "host", "--fabric", "softverbs", "--paths",
                                       path, *flags, *QUICK)
            self.assert_ends(outcome, UNAVAILABLE, " ".join(flags), "the payload is in host memory")

    def test_a_gpu_that_is_not_there_is_named(self):
        self.refuse("latency", "--loopback", "--gpu", "-1", names=["--gpu -1", "numbered from 0"])
        outcome = self.run_program("latency", "--loopback", "--paths", "tcp", "--remote-gpu", "1000")
        self.assert_ends(outcome, UNAVAILABLE, "--remote-gpu 1000")

    def test_bounce_memory_beyond_reason_is_refused_with_its_size(self):
        outcome = self.run_program("bandwidth", "--loopback", "--paths", "tcp", "--sizes", "16M", "--queue-pairs", "64",
                                   "--chunk", "8388544", *QUICK)
        self.assert_ends(outcome, UNAVAILABLE, "64 queue pairs", "bounce memory", "--chunk")

    def test_a_number_out_of_range_is_refused_with_the_range(self):
        for arguments, names in (
                (["bandwidth", "--loopback", "--depth", "0"], ["--depth 0", "1 … 4096"]),
                (["bandwidth", "--loopback", "--queue-pairs", "0"], ["--queue-pairs 0", "1 … 1024"]),
                (["bandwidth", "--loopback", "--queue-pairs", "4294967297"], ["--queue-pairs", "4294967297"]),
                (["latency", "--loopback", "--chunk", "1"], ["--chunk 1", "256 … 8388544"]),
                (["latency", "--loopback", "--retry-count", "8"], ["--retry-count 8", "0 … 7"]),
                (["latency", "--loopback", "--time-budget", "0"], ["--time-budget", "above 0"]),
                (["latency", "--loopback", "--time-budget", "nan"], ["--time-budget", "above 0"]),
                (["registration", "--time-budget", "-1"], ["--time-budget", "above 0"]),
                (["bandwidth", "--loopback", "--time-budget", "inf"], ["--time-budget", "'inf'", "up to 1000000"]),
                (["bandwidth", "--loopback", "--time-budget", "1e10"], ["--time-budget", "'1e10'", "up to 1000000"]),
                (["registration", "--time-budget", "1e300"], ["--time-budget", "'1e300'", "up to 1000000"]),
                (["latency", "--loopback", "--out", ""], ["--out", "value is empty"]),
                (["latency", "--loopback", "--inline", "65537"], ["--inline 65537", "0 … 65536"]),
                (["latency", "--loopback", "--gid-index", "-1"], ["--gid-index -1", "0 … 65535"]),
                (["latency", "--loopback", "--remote-gid-index", "65536"], ["--remote-gid-index 65536", "0 … 65535"]),
                (["bandwidth", "--loopback", "--footprint", "17T"], ["--footprint", "outside 0 … 17592186044416"]),
                (["latency", "127.0.0.1", "--port", "65536"], ["65536", "1 to 65535"]),
                (["latency", "127.0.0.1", "--port", "0"], ["--port 0", "1 to 65535"]),
                (["latency", "127.0.0.1:1", "--port", "2"], ["--port 2", "'127.0.0.1:1'", "leave one of them out"]),
                (["serve", "--port", "65536"], ["65536", "0 to 65535"]),
                (["serve", "--max-queue-pairs", "0"], ["--max-queue-pairs", "1 to"])):
            with self.subTest(arguments=arguments):
                self.refuse(*arguments, names=names)

    def test_a_wrong_address_is_refused_with_its_form(self):
        for address, names in {
                "host:99999": ["'host:99999'", "'99999' is not a port", "1 to 65535"],
                "host:0": ["'host:0'", "'0' is not a port", "1 to 65535"],
                "host:": ["'host:'", "1 to 65535"],
                "host:12x": ["'12x' is not a port"],
                "[::1": [r"'\[::1'", r"\[ADDRESS\]:PORT"],
                "[::1]7471": [r"'\[::1\]7471'", r"\[ADDRESS\]:PORT"],
                ":7471": ["':7471'", "no host before ':'"]}.items():
            with self.subTest(address=address):
                self.refuse("latency", address, names=names)

    def test_an_empty_name_as_an_unset_variable_gives_is_refused(self):
        for arguments in (["latency", "--loopback", "--device"], ["latency", "--loopback", "--remote-device"],
                          ["latency", "127.0.0.1", "--key-file"], ["serve", "--port", "0", "--key-file"],
                          ["registration", "--device"], ["doctor", "--device"], ["topology", "--xml"],
                          ["topology", "--picture"], ["latency", "--loopback", "--samples"]):
            with self.subTest(arguments=arguments):
                self.refuse(*arguments, "", names=[arguments[-1], "the value is empty"])
        self.refuse("doctor", "", names=["HOST", "the value is empty"])

    def test_an_empty_value_of_any_flag_is_refused_by_the_flag(self):
        for command, flags in {
                ("bandwidth", "--loopback"): ("--tcp-threads", "--gpu", "--remote-gpu", "--gid-index", "--mtu",
                                              "--timeout", "--inline", "--staging-depth", "--depth", "--time-budget", "--paths",
                                              "--require", "--sizes", "--fabric", "--footprint"),
                ("latency", "127.0.0.1"): ("--port",),
                ("serve",): ("--port", "--max-queue-pairs", "--max-memory", "--bind"),
                ("registration",): ("--gpu",), ("p2p",): ("--remote-gpu",), ("doctor",): ("--port", "--gpu", "--check")
        }.items():
            for flag in flags:
                with self.subTest(command=command, flag=flag):
                    self.refuse(*command, flag, "", names=[f"{flag}: the value is empty"])

    def test_two_results_cannot_go_to_one_file(self):
        file = self.folder / "a"
        flags = {"--out": ["--out", file], "--samples": ["--samples", f"{self.folder}/./a"],
                 "--benchmark_out": [f"--benchmark_out={file}"]}
        for first, second in (("--out", "--samples"), ("--out", "--benchmark_out"), ("--samples", "--benchmark_out")):
            with self.subTest(first=first, second=second):
                self.refuse("latency", "--loopback", "--paths", "tcp", *flags[first], *flags[second],
                            names=["two results cannot go to one file"])

    def test_two_spellings_of_one_file_are_one_file(self):
        (self.folder / "real").mkdir()
        (self.folder / "linked").symlink_to("real")
        (self.folder / "link.json").symlink_to("real/there")
        (self.folder / "real" / "there").touch()
        file, there = self.folder / "real" / "a", self.folder / "real" / "there"
        for spelling, file in ((os.path.relpath(file), file), (self.folder / "linked" / "a", file),
                               (self.folder / "link.json", there), (self.folder / "none/../real/a", file)):
            for flags in (["--out", spelling, f"--benchmark_out={file}"], ["--out", file, "--samples", spelling]):
                with self.subTest(flags=flags):
                    self.refuse("latency", "--loopback", "--paths", "tcp", *flags,
                                names=["two results cannot go to one file"])
        self.refuse("topology", "--xml", self.folder / "real" / "a.svg", "--picture",
                    self.folder / "linked" / "." / "a.svg", names=["two results cannot go to one file"])
        self.refuse("topology", "--xml", os.path.relpath(file), "--picture", file,
                    names=["two results cannot go to one file"])

    def test_no_host_or_two_targets_are_refused(self):
        for command in ("compare", "latency", "bandwidth", "visible", "overlap"):
            with self.subTest(command=command):
                self.refuse(command, names=["no HOST", "gdrbench serve", f"gdrbench {command} --loopback"])
                self.refuse(command, "127.0.0.1", "--loopback", names=["either HOST or --loopback"])

    def test_an_unknown_command_or_flag_is_named(self):
        self.refuse("nosuch", names=["'nosuch'", "serve, compare, latency, bandwidth, visible, overlap"])
        self.refuse(names=["subcommand is required", "--help"])
        self.refuse("latency", "--loopback", "--nosuch", names=["--nosuch"])
        self.refuse("latency", "--loopback", "--depth", "3", names=["--depth"])
        self.refuse("visible", "--loopback", "--depth", "3", names=["--depth"])
        self.refuse("visible", "--loopback", "--load", "compute", names=["--load"])
        self.refuse("bandwidth", "--loopback", "--load", "compute", names=["--load"])
        self.refuse("overlap", "--loopback", "--samples", "x.csv", names=["--samples"])
        self.refuse("serve", "127.0.0.1", names=["127.0.0.1"])
        self.refuse("serve", "--port", 0, "--benchmark_filter=x", names=["--benchmark_filter=x", "measures nothing"])

    def test_a_benchmark_flag_that_google_benchmark_does_not_know_is_named(self):
        for flag in ("--benchmark_nosuch=1", "--benchmark_repetitions=many", "--benchmark_min_time=x"):
            with self.subTest(flag=flag):
                self.refuse("latency", "--loopback", "--paths", "tcp", flag, names=[flag])

    def test_a_filter_that_leaves_nothing_is_no_success(self):
        self.refuse("latency", "--loopback", "--paths", "tcp", "--benchmark_filter=nothing",
                    names=["no case was measured", "--benchmark_filter"])
        self.refuse("latency", "--loopback", "--paths", "tcp", "--benchmark_repetitions=0",
                    names=["--benchmark_repetitions=0", "from 1 to 9999"])

    def test_a_time_budget_too_short_to_measure_anything_is_no_success(self):
        arguments = ["bandwidth", "--loopback", "--paths", "tcp", "--time-budget", "0.0000001"]
        self.assert_ends(self.run_program(*arguments), FAILED, "nothing was measured", "budget of 1e-07 s", "raise")
        self.assert_ends(self.run_program(*arguments, "--require", "tcp"), UNAVAILABLE, "--require tcp",
                         "nothing of this path was measured", "budget of 1e-07 s")

    def test_a_required_path_that_a_filter_leaves_out_is_no_success(self):
        outcome = self.run_program("latency", "--loopback", "--paths", "tcp,tcp_wire", "--require", "tcp", "--sizes", 8,
                                   "--benchmark_filter=/tcp_wire/", *QUICK)
        self.assert_ends(outcome, UNAVAILABLE, "--require tcp", "nothing of this path was measured",
                         "--benchmark_filter")

    def test_a_list_of_the_cases_is_all_that_is_printed_when_asked_for(self):
        outcome = self.run_program("latency", "--loopback", "--paths", "tcp", "--sizes", "8,64",
                                   "--benchmark_list_tests=true")
        self.assert_ends(outcome, DONE)
        self.assertEqual(2, len(outcome.out.splitlines()), outcome.out)
        if SOFTVERBS:
            outcome = self.run_program("registration", "--fabric", "softverbs", "--sizes", "4k,64k",
                                       "--benchmark_list_tests=true")
            self.assert_ends(outcome, DONE)
            self.assertRegex(outcome.out, r"\A(registration/\S+\n)+\Z")

    def test_a_key_file_that_cannot_be_read_or_is_empty_is_named(self):
        empty = self.folder / "empty"
        empty.write_text("\n")
        for command in (["serve", "--port", 0], ["latency", "127.0.0.1"]):
            self.refuse(*command, "--key-file", self.folder / "none", names=["--key-file .*/none", "ENOENT"])
            self.refuse(*command, "--key-file", empty, names=["--key-file .*/empty", "holds no key"])

    def test_an_address_that_this_host_does_not_have_cannot_be_served(self):
        self.assert_ends(self.run_program("serve", "--port", 0, "--bind", "192.0.2.1", seconds=SOON_S), FAILED,
                         "192.0.2.1", "EADDRNOTAVAIL", "ip address")

    def test_a_word_for_cores_is_no_address_to_serve_on(self):
        for word in ("auto", "none"):
            self.refuse("serve", "--port", 0, "--bind", word,
                        names=[f"serve --bind {word}", "address", "client chooses the cores"])

    def test_a_port_that_is_taken_cannot_be_served(self):
        server = self.serve()
        self.assert_ends(self.run_program("serve", "--port", server.port, seconds=SOON_S), FAILED,
                         server.address, "EADDRINUSE", "--port")
        self.assert_serves(server)

    def test_help_and_version_are_no_faults(self):
        for arguments in (["--help"], ["--version"], ["serve", "--help"], ["compare", "--help"]):
            outcome = self.run_program(*arguments, seconds=SOON_S)
            self.assert_ends(outcome, DONE)
            self.assertIn("gdrbench", outcome.out)

    def test_help_of_the_staging_depth_gives_the_bytes_of_each_kind(self):
        text = " ".join(self.run_program("bandwidth", "--help", seconds=SOON_S).out.split())
        self.assertRegex(text, "--staging-depth [^-]*16M, of tcp 4M, or 1M with the payload in host memory")

    def test_a_standard_output_that_takes_nothing_is_an_error_of_one_line(self):
        for arguments in (["--help"], ["--version"], ["doctor", "--help"], ["compare", "--help"], ["doctor", "--list"],
                          ["doctor", "--explain"], ["topology"], ["serve", "--port", 0],
                          ["latency", "--loopback", "--paths", "tcp", "--benchmark_list_tests=true"],
                          ["latency", "--loopback", "--paths", "tcp", *QUICK]):
            with self.subTest(arguments=arguments), open("/dev/full", "w", encoding="ascii") as full:
                outcome = self.run_program(*arguments, stdout=full, seconds=SOON_S)
                self.assert_ends(outcome, FAILED, "^gdrbench: writing .*to standard output: ENOSPC")
                self.assertEqual(1, len(outcome.err.splitlines()), outcome.err)

    def test_a_standard_error_that_takes_nothing_does_not_change_the_exit_status(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            self.assertEqual(USAGE, self.run_program("nosuch", stderr=full, seconds=SOON_S).status)
            self.assertEqual(DONE, self.run_program("topology", stderr=full, seconds=SOON_S).status)

    def test_what_an_error_or_a_table_quotes_cannot_steer_a_terminal(self):
        red = "\033[31mx\x9b\r"
        for arguments in ([red], ["compare", red], ["compare", "--loopback", "--paths", red],
                          ["latency", "--loopback", "--sizes", red], ["latency", "--loopback", "--fabric", red],
                          ["topology", f"--{red}"], ["topology", "--snapshot", red], ["doctor", "--check", red],
                          ["serve", "--bind", red], ["latency", "--loopback", f"--benchmark_{red}"]):
            with self.subTest(arguments=arguments):
                outcome = self.run_program(*arguments, seconds=PATIENCE_S)
                self.assertIn(outcome.status, (USAGE, FAILED))
                self.assertIn("\\x1b[31mx\\x9b\\x0d", outcome.err)
                self.assertNotRegex(outcome.out + outcome.err, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        outcome = self.run_program("latency", "--loopback", "--paths", "tcp", "--sizes", 8, *QUICK, "--out",
                                   self.folder / red)
        self.assert_ends(outcome, DONE)
        self.assertIn("\\x1b[31mx", outcome.out)
        self.assertNotIn("\033", outcome.out)

    def test_an_error_of_several_lines_keeps_them(self):
        machine = self.folder / "recorded"
        outcome = self.run_program("doctor", "--no-probes", "--record", machine)
        self.assertEqual(2, len(outcome.err.splitlines()), outcome.err)
        self.assertRegex(outcome.err, r"(?m)^  gdrbench doctor --snapshot ")


if __name__ == "__main__":
    main()
