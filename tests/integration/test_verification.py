#!/usr/bin/python3
"""Verification is real: one bit that changes on its way fails the run, and the text names the byte."""

import json
import re

from harness import DONE, FAILED, QUICK, TestCase, check_result, main
from proxy import TO_CLIENT, TO_SERVER, Proxy

SIZE = 65536
MASK = 0x10
# Messages of 64 KiB with short headers: this lies in the second message of a connection. The first
# is the warm-up, whose buffer the second overwrites; the first run of a case is one message besides.
POSITION = SIZE + 20000


class Verification(TestCase):
    def measure(self, suite, *flags, direction=TO_SERVER, position=POSITION):
        server = self.serve()
        proxy = Proxy(server.port, direction, position, MASK)
        self.addCleanup(proxy.close)
        outcome = self.run_program(suite, proxy.address, "--sizes", SIZE, *flags, *QUICK, "--out",
                                   self.folder / "result.json")
        self.assert_serves(server)
        return proxy, outcome

    def assert_byte_is_named(self, outcome, end):
        self.assert_ends(outcome, FAILED, f"{end}.*wrong byte")
        found = re.search(r"(?:latency|bandwidth)/\w+/.*wrong byte in message \d+ of \d+, slot 0, byte (\d+): "
                          r"expected 0x(..), found 0x(..)", outcome.err)
        self.assertTrue(found, outcome.err)
        self.assertLess(abs(int(found.group(1)) - 20000), 1000)  # headers and small control messages precede it
        self.assertEqual(MASK, int(found.group(2), 16) ^ int(found.group(3), 16))
        self.assertEqual("", check_result(self.folder / "result.json"))
        own = json.loads((self.folder / "result.json").read_text())["gdrbench"]
        self.assertIs(own["complete"], False)
        self.assertIn("wrong byte", own["incomplete_reason"])
        self.assertEqual([], own["cases"])

    def test_a_run_through_the_proxy_is_good_when_no_bit_changes(self):
        proxy, outcome = self.measure("latency", "--paths", "tcp,tcp_wire", position=None)
        self.assert_ends(outcome, DONE)
        self.assertEqual(0, proxy.flips)

    def test_a_wrong_bit_on_the_way_to_the_server_is_found_there(self):
        for path in ("tcp", "tcp_wire"):
            for op in ("send", "write_imm"):
                with self.subTest(path=path, op=op):
                    _, outcome = self.measure("bandwidth", "--paths", path, "--op", op, "--direction", "forward")
                    self.assert_byte_is_named(outcome, "responder 127.0.0.1")

    def test_a_wrong_bit_on_the_way_to_the_client_is_found_there(self):
        for path in ("tcp", "tcp_wire"):
            for op, way in (("send", "reverse"), ("read", "forward")):
                with self.subTest(path=path, op=op):
                    _, outcome = self.measure("bandwidth", "--paths", path, "--op", op, "--direction", way,
                                              direction=TO_CLIENT)
                    self.assert_byte_is_named(outcome, "initiator")

    def test_a_wrong_bit_in_a_ping_pong_is_found_where_it_arrives(self):
        for path in ("tcp", "tcp_wire"):
            with self.subTest(path=path):
                _, outcome = self.measure("latency", "--paths", path)
                self.assert_byte_is_named(outcome, "responder 127.0.0.1")
                _, outcome = self.measure("latency", "--paths", path, direction=TO_CLIENT)
                self.assert_byte_is_named(outcome, "initiator")


if __name__ == "__main__":
    main()
