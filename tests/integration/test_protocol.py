#!/usr/bin/python3
"""Unknown clients, wrong keys and malformed messages: each is answered or closed in time, and the server goes on
serving."""

import os
import socket
import struct

from harness import DONE, FAILED, PEER_LOST, QUICK, SOON_S, USAGE, TestCase, main
from raw_client import CASE, PROTOCOL_VERSION, RawClient, connect_request, open_request, welcomed

TLS_HELLO = bytes.fromhex("160301004a0100004603035c9b") + bytes(64)
LIMITS = ["--max-memory", "64M", "--max-queue-pairs", "4"]


class Keys(TestCase):
    def latency(self, server, *arguments, key=None):
        return self.run_program("latency", server.address, "--paths", "tcp", *arguments, seconds=SOON_S, key=key)

    def test_the_right_key_is_served_from_the_environment_or_a_file(self):
        server = self.serve(key="right")
        self.assert_serves(server, key="right")
        file = self.folder / "key"
        file.write_text("right\n")
        self.assert_ends(self.latency(server, "--key-file", file, "--sizes", 8, *QUICK), DONE)

    def test_a_wrong_key_is_refused_and_the_server_goes_on(self):
        server = self.serve(key="right")
        outcome = self.latency(server, key="wrong")
        self.assert_ends(outcome, USAGE, server.address, "the key is wrong")
        server.wait_for("refused: the key is wrong")
        self.assert_serves(server, key="right")
        for line in (server.out, server.err, outcome.out, outcome.err):
            self.assertNotIn("right", line)

    def test_a_missing_key_is_asked_for_with_the_flags_that_give_it(self):
        server = self.serve(key="right")
        self.assert_ends(self.latency(server), USAGE, server.address, "asks for a key", "--key-file", "GDRBENCH_KEY")
        self.assert_serves(server, key="right")

    def test_a_key_for_a_server_that_has_none_is_refused(self):
        server = self.serve()
        self.assert_ends(self.latency(server, key="right"), USAGE, server.address, "--no-key", "drop the key")
        self.assert_serves(server)

    def test_a_client_that_skips_the_proof_is_not_served(self):
        server = self.serve(key="right")
        with RawClient(server.port) as client:
            self.assertTrue(client.greet(key=True)["key"])
            client.send(open_request())
            self.assertTrue(client.is_closed())
        self.assert_serves(server, key="right")


class PendingConnections(TestCase):
    def setUp(self):
        super().setUp()
        self.server = self.serve(*LIMITS)

    def assert_closed(self, *data, logged):
        with RawClient(self.server.port) as pending:
            for part in data:
                pending.send_bytes(part)
            self.assertTrue(pending.is_closed())
        self.server.wait_for(rf"refused: .*{logged}")

    def test_what_is_no_message_is_closed_at_once_and_shown_in_the_log(self):
        for name, data, logged in (
                ("an HTTP request", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", r'begins with "GET / HTTP'),
                ("a TLS hello", TLS_HELLO, r'begins with "\\x16\\x03\\x01'),
                ("an SSH greeting", b"SSH-2.0-OpenSSH_9.2\r\n", r'begins with "SSH-2.0'),
                ("random bytes", b"\xff" + os.urandom(4096), r"not a gdrbench message"),
                ("a claim of 4 GiB - 1", b"\xff\xff\xff\xff{}", r"claims 4294967295 bytes"),
                ("a claim of 5 GiB in eight bytes", (5 << 30).to_bytes(8, "big"), r"not a gdrbench message"),
                ("a claim of 5 GiB in eight bytes, low end first", (5 << 30).to_bytes(8, "little"),
                 r"not a gdrbench message"),
                ("an empty message", bytes(4), r"not a gdrbench message"),
                ("no object", b"\x00\x00\x00\x02[]", r"not an object"),
                ("no JSON", b"\x00\x00\x00\x02{]", r"not a gdrbench message"),
                ("a nest of a million brackets", (1 << 20).to_bytes(4, "big") + b"[" * (1 << 20), r"not a gdrbench")):
            with self.subTest(name):
                self.assert_closed(data, logged=logged)
        self.assert_serves(self.server)

    def test_a_wrong_greeting_is_closed_or_answered(self):
        for name, changes in (("no number", {"gdrbench": "one"}), ("no nonce", {"nonce": None, "key": True}),
                              ("an unknown kind", {"kind": "nosuch", "gdrbench": None})):
            with self.subTest(name), RawClient(self.server.port) as pending:
                pending.greet(**changes)
                self.assertTrue(pending.is_closed())
        self.assert_serves(self.server)

    def test_another_protocol_version_is_refused_with_both_versions(self):
        with RawClient(self.server.port) as client:
            answer = client.greet(gdrbench=PROTOCOL_VERSION + 1, version="9.9")
            self.assertEqual(PROTOCOL_VERSION, answer["gdrbench"])
            self.assertTrue(client.is_closed())
        self.server.wait_for(rf"refused: .*protocol {PROTOCOL_VERSION + 1} \(gdrbench 9\.9\).*"
                             rf"protocol {PROTOCOL_VERSION} .*update gdrbench")
        self.assert_serves(self.server)

    def test_a_client_tells_which_end_to_update_when_the_server_speaks_another_version(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            address = f"127.0.0.1:{other.getsockname()[1]}"
            client = self.start("latency", address)
            connection, _ = other.accept()
            with connection:
                text = b'{"gdrbench": 99, "version": "9.9", "kind": "control"}'
                connection.sendall(len(text).to_bytes(4, "big") + text)
                self.assert_ends(client.finish(SOON_S), FAILED, address, r"protocol 99 \(gdrbench 9\.9\)",
                                 f"protocol {PROTOCOL_VERSION}", "update gdrbench on this end")

    def test_a_port_of_another_service_is_named_as_such(self):
        with socket.create_server(("127.0.0.1", 0)) as other:
            address = f"127.0.0.1:{other.getsockname()[1]}"
            client = self.start("latency", address)
            connection, _ = other.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                self.assert_ends(client.finish(SOON_S), PEER_LOST, address, "not a gdrbench message", "HTTP/1.1 400")

    def test_silence_is_closed_at_the_handshake_limit(self):
        halves = {"nothing": b"", "half a length": b"\x00\x00", "a length": b"\x00\x00\x00\x10",
                  "half a message": b'\x00\x00\x00\x10{"gdr', "half a length of 4 GiB": b"\xff\xff"}
        pending = {name: RawClient(self.server.port) for name in halves}
        flooded = self.serve()
        flood = [RawClient(flooded.port) for _ in range(20)]
        for name, data in halves.items():
            pending[name].send_bytes(data)
        self.assert_serves(self.server)  # meanwhile
        for name, connection in pending.items():
            with self.subTest(name), connection:
                self.assertTrue(connection.is_closed())
        for connection in flood:
            with connection:
                self.assertTrue(connection.is_closed())
        self.assert_serves(flooded)
        self.assert_serves(self.server)

    def test_a_data_connection_with_a_wrong_token_is_refused_and_others_are_not_hurt(self):
        with welcomed(self.server.port) as client:
            opened = client.ask(open_request())
            right = opened["tokens"][0]
            for token, number in (("0" * len(right), 0), ("", 0), (right, 1), (right, -1), (right, "0"), (None, 0)):
                with self.subTest(token=token, number=number), RawClient(self.server.port) as pending:
                    answer = pending.greet("data", token=token, connection=number)
                    self.assertEqual("error", answer["type"])
                    self.assertIn("token", answer["text"])
                    self.assertTrue(pending.is_closed())
            with RawClient(self.server.port) as data:
                self.assertEqual("accepted", data.greet("data", token=right, connection=0)["type"])
                with RawClient(self.server.port) as twice:
                    self.assertEqual("error", twice.greet("data", token=right, connection=0)["type"])
        self.assert_serves(self.server)


class Cases(TestCase):
    def setUp(self):
        super().setUp()
        self.server = self.serve(*LIMITS)
        self.client = welcomed(self.server.port)
        self.addCleanup(self.client.socket.close)

    def open(self, number=1, **changes):
        return self.client.ask(open_request(number, dict(CASE, **changes)))

    def assert_still_usable(self):
        """The same session, and then the next one."""
        self.assertEqual("opened", self.open(99)["type"])
        self.client.send({"type": "close", "id": 99})
        self.client.send({"type": "bye"})
        self.assertTrue(self.client.is_closed())
        self.assert_serves(self.server)

    def test_a_field_out_of_range_is_refused_with_its_name_and_the_session_goes_on(self):
        for field, values in {
                "size_bytes": [0, -1, 1 << 45, 2 ** 64, 1.5, "8", None, [], {}],
                "depth": [0, -1, 1 << 17, 1 << 33, True],
                "queue_pairs": [0, -1, 1025, 1 << 32],
                "footprint_bytes": [-1, 1 << 45, 1 << 64],
                "gpu": [-1, 1 << 31],
                "suite": ["nosuch", 1, None], "path": ["nosuch"], "op": ["nosuch"], "memory": ["nosuch"],
                "completion": ["nosuch"], "direction": ["nosuch"],
                "staging": [None, [], {"variant": "nosuch", "chunk_bytes": 1}, {"variant": "plain", "chunk_bytes": 0},
                            dict(CASE["staging"], engine="nosuch"), dict(CASE["staging"], slots=257),
                            dict(CASE["staging"], streams=0)],
                "pair": [5, "x" * 129], "pairs_at_once": [0, 65, "2"],
                "load": ["nosuch"], "shares_gpu": [1], "bind": ["nosuch", 1],
                "verbs": [None, {}, dict(CASE["verbs"], path_mtu=1500), dict(CASE["verbs"], device="x" * 100)]}.items():
            for value in values:
                with self.subTest(field=field, value=value):
                    answer = self.open(**{field: value})
                    self.assertEqual(("error", "usage"), (answer["type"], answer["kind"]), answer)
                    self.assertRegex(answer["text"], f"{field.split('_')[0]}|case.{field}")
        self.assert_still_usable()

    def test_a_missing_field_is_named(self):
        for field in CASE:
            case = {name: value for name, value in CASE.items() if name != field}
            with self.subTest(field=field):
                answer = self.client.ask(open_request(case=case))
                self.assertEqual("error", answer["type"])
                self.assertIn(f"case.{field}", answer["text"])
        self.assert_still_usable()

    def test_more_than_the_server_gives_is_refused_with_the_limit_and_the_flag_that_raises_it(self):
        for changes, names in (
                ({"footprint_bytes": 1 << 40, "size_bytes": 1 << 30}, ["1 TiB", "64 MiB", "--max-memory"]),
                ({"size_bytes": 4294967297}, ["4 GiB", "64 MiB", "--max-memory"]),
                ({"size_bytes": 65 << 20}, ["65 MiB", "64 MiB", "--max-memory"]),
                ({"queue_pairs": 5}, ["5 queue pairs", "limit is 4", "--max-queue-pairs"])):
            with self.subTest(changes):
                answer = self.open(**changes)
                self.assertEqual(("error", "unavailable"), (answer["type"], answer["kind"]), answer)
                for name in names:
                    self.assertIn(name, answer["text"])
        self.assert_still_usable()

    def test_requests_about_cases_that_are_not_there_are_answered(self):
        for request in ({"type": "connect", "id": 7}, {"type": "run", "id": 7}, {"type": "open", "id": 1},
                        {"type": "open", "case": CASE}, {"type": "connect"}, {"type": "connect", "id": "x"}):
            with self.subTest(request):
                answer = self.client.ask(request)
                self.assertEqual("error", answer["type"])
                self.assertRegex(answer["text"], rf"{request['type']}\.(id|case)")
        self.assert_still_usable()

    def test_ranks_that_cannot_be_are_refused_with_the_field(self):
        for changes, named in (({"ranks": 1}, "open.ranks"), ({"ranks": 1 << 20}, "open.ranks"), ({"rank": 2}, "open.rank"),
                               ({"rank": -1}, "open.rank"), ({"accept": 0}, "open.accept"), ({"accept": [2]}, "open.accept"),
                               ({"accept": ["x"]}, "open.accept"), ({"accept": [0] * 9}, "open.accept"),
                               ({"ranks": 3}, "bandwidth suite has 2 ranks, not 3")):
            with self.subTest(changes):
                answer = self.client.ask(open_request(**changes))
                self.assertEqual(("error", "usage"), (answer["type"], answer["kind"]), answer)
                self.assertIn(named, answer["text"])
        for changes, named in (({"offers": {}}, "connect.offers"), ({"offers": [{}]}, "connect.offers"),
                               ({"dial": [{}]}, "connect.dial.host"), ({"dial": 5}, "connect.dial"),
                               ({"dial": [{"host": "127.0.0.1", "port": 0, "token": "x", "rank": 0}]}, "connect.dial.port"),
                               ({"dial": [{"host": "127.0.0.1", "port": 1, "token": "x", "rank": 0}]}, "ECONNREFUSED")):
            with self.subTest(changes):
                self.assertEqual("opened", self.client.ask(open_request(accept=[]))["type"])
                answer = self.client.ask(connect_request(**changes))
                self.assertEqual("error", answer["type"])
                self.assertIn(named, answer["text"])
                self.client.send({"type": "close", "id": 1})
        self.assert_still_usable()

    def test_an_offer_that_makes_no_sense_is_an_error_of_the_case(self):
        for offer, named in (({}, "offer.wire: missing"), ({"wire": {}}, "offer.path: missing"), (None, "offer: not an object"),
                             ({"wire": None, "path": None}, "offer.wire: not an object"),
                             ({"wire": {}, "path": {"incoming": {}}}, "offer.path.incoming.address: missing"),
                             ({"wire": {}, "path": {"incoming": {"address": 1, "length": "x", "rkey": 0}}},
                              "offer.path.incoming.length")):
            with self.subTest(offer):
                answer = self.client.ask(open_request(case=dict(CASE, direction="reverse", op="write")))
                with RawClient(self.server.port) as data:
                    data.greet("data", token=answer["tokens"][0], connection=0)
                    answer = self.client.ask(dict(connect_request(), offers=[offer, {}]))
                    self.assertEqual("error", answer["type"])
                    self.assertIn(named, answer["text"])
                    self.assertNotIn("json", answer["text"])
                self.client.send({"type": "close", "id": 1})
        self.assert_still_usable()

    def test_garbage_on_a_data_connection_fails_the_run_and_not_the_server(self):
        def frame(kind, length, rkey=0, address=0):
            return struct.pack("<IIIIQ", kind, length, 0, rkey, address)

        send, write, read_request, read_response = 1, 2, 4, 5
        for name, garbage in (("an unknown kind", b"\xff" * 64),
                              ("a message longer than the receive", frame(send, 0x7f000000)),
                              ("a write to memory that is not registered", frame(write, 4096)),
                              ("a write with an unknown rkey", frame(write, 0, rkey=77)),
                              ("a read of memory that is not registered", frame(read_request, 4096)),
                              ("an answer that was not asked for", frame(read_response, 0))):
            with self.subTest(name):
                opened = self.client.ask(open_request())
                with RawClient(self.server.port) as data:
                    data.greet("data", token=opened["tokens"][0], connection=0)
                    self.assertEqual("connected", self.client.ask(connect_request())["type"])
                    self.client.send({"type": "run", "id": 1, "iterations": 10, "warmup": 0, "seed": 1})
                    self.assertEqual("ready", self.client.receive()["type"])
                    self.client.send({"type": "go"})
                    data.send_bytes(garbage)
                    answer = self.client.receive()
                    self.assertEqual("error", answer["type"])
                    self.assertRegex(answer["text"], r"127\.0\.0\.1:\d+: ")
                    self.client.send({"type": "abort", "text": "test"})
        self.assert_still_usable()

    def test_a_broken_message_in_a_session_ends_the_session_and_not_the_server(self):
        self.client.send_bytes(b"\xff\xff\xff\xff")
        self.assertTrue(self.client.is_closed())
        self.server.wait_for(r"lost: .*not a gdrbench message")
        self.assert_serves(self.server)


if __name__ == "__main__":
    main()
