#!/usr/bin/python3
"""What cannot run here ends with status 3 and the reason."""

import glob

from harness import DONE, QUICK, RDMA_DEVICES, SOON_S, UNAVAILABLE, TestCase, main


class Unavailable(TestCase):
    """With --fabric hardware, so that no software NIC stands in."""

    def setUp(self):
        super().setUp()
        if RDMA_DEVICES:
            self.skipTest(f"this machine has RDMA devices: {', '.join(RDMA_DEVICES)}")

    def refuse(self, *arguments, names):
        self.assert_ends(self.run_program("latency", "--loopback", "--fabric", "hardware", *arguments, *QUICK,
                                          seconds=SOON_S), UNAVAILABLE, "no RDMA device", *names)

    def test_a_required_path_that_cannot_run_is_an_error_with_the_reason(self):
        self.refuse("--require", "gdr", names=["--require gdr"])
        self.refuse("--require", "tcp,rdma", names=["--require rdma"])

    def test_paths_none_of_which_can_run_are_an_error_with_the_reason(self):
        self.refuse("--paths", "gdr", names=["none of the paths"])
        self.refuse("--paths", "rdma,gdr,rdma_wire", names=["none of the paths"])
        self.refuse("--paths", "rdma", "--device", "nosuch", names=["none of the paths"])

    def test_a_path_that_cannot_run_is_skipped_with_its_reason_beside_one_that_can(self):
        outcome = self.run_program("latency", "--loopback", "--fabric", "hardware", "--sizes", 8, *QUICK)
        self.assert_ends(outcome, DONE)
        for path in ("rdma", "gdr"):
            self.assertRegex(outcome.out, rf"(?m)^[a-z, ]*\b{path}\b[a-z, ]* skipped: .*no RDMA device")

    def test_gpu_memory_without_a_gpu_is_an_error_with_the_reason(self):
        if glob.glob("/dev/nvidia[0-9]*"):
            self.skipTest("this machine has a GPU")
        self.assert_ends(
            self.run_program("latency", "--loopback", "--paths", "tcp", "--memory", "cuda", *QUICK, seconds=SOON_S),
            UNAVAILABLE, "CUDA")

    def test_a_way_of_registering_gpu_memory_is_no_reason_to_fail_where_there_is_no_gpu(self):
        if glob.glob("/dev/nvidia[0-9]*"):
            self.skipTest("this machine has a GPU")
        for way in ("auto", "dmabuf", "peermem"):
            with self.subTest(way=way):
                arguments = ["latency", "--loopback", "--sizes", 8, "--registration", way, *QUICK]
                self.assert_ends(self.run_program(*arguments, "--paths", "tcp", "--memory", "cuda", seconds=SOON_S),
                                 UNAVAILABLE, "CUDA")
                self.assert_ends(self.run_program(*arguments, "--paths", "tcp"), DONE)

    def test_a_required_path_that_fails_at_one_point_only_is_an_error_too(self):
        outcome = self.run_program("latency", "--loopback", "--require", "tcp", "--paths", "tcp", "--sizes", 8,
                                   "--op", "send,write", *QUICK)
        self.assert_ends(outcome, UNAVAILABLE, "--require tcp", "a plain write raises no completion")
        self.assertRegex(outcome.out, r"tcp +send +8 B")


if __name__ == "__main__":
    main()
