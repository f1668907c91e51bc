"""A client that says whatever a test wants: length-prefixed JSON over a plain socket."""

import json
import socket

PROTOCOL_VERSION = 5
SILENCE_S = 15  # longer than the server's handshake limit of 5 s

CASE = {
    "suite": "bandwidth", "path": "tcp_wire", "op": "send", "memory": "host", "completion": "event",
    "direction": "forward", "size_bytes": 4096, "depth": 16, "queue_pairs": 1, "footprint_bytes": 65536, "gpu": 0, "load": "none",
    "shares_gpu": False, "pair": "", "pairs_at_once": 1, "bind": "auto", "tcp_threads": None,
    "staging": {"variant": "pipelined", "engine": "auto", "chunk_bytes": 262144, "slots": 0, "streams": 1},
    "verbs": {"transport": "rc", "device": "", "gid_index": None, "port": 1, "path_mtu": 0, "timeout": 14,
              "retry_count": 7, "rnr_retry": 7, "min_rnr_timer": 1, "service_level": 0, "traffic_class": 0, "inline_bytes": 220,
              "connect": "control", "relaxed_ordering": True, "registration": "auto"}}


class RawClient:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SILENCE_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, message):
        text = json.dumps(message).encode()
        self.socket.sendall(len(text).to_bytes(4, "big") + text)

    def send_bytes(self, data):
        """Of a server that has hung up meanwhile, that is seen at the next read."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def receive(self):
        """The next message; None once the connection is closed."""
        header = self._receive_bytes(4)
        return json.loads(self._receive_bytes(int.from_bytes(header, "big"))) if header else None

    def ask(self, message):
        self.send(message)
        return self.receive()

    def is_closed(self):
        """Whether the server hangs up; what it says before that is dropped."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            pass
        except TimeoutError:
            return False
        return True

    def _receive_bytes(self, count):
        data = b""
        while len(data) < count:
            try:
                part = self.socket.recv(count - len(data))
            except ConnectionResetError:
                part = b""
            if not part:
                return b""
            data += part
        return data

    def greet(self, kind="control", **changes):
        """Sends a hello with some members changed, and returns the answer."""
        hello = {"gdrbench": PROTOCOL_VERSION, "version": "test", "commit": "test", "kind": kind}
        if kind == "control":
            hello.update(nonce="0" * 32, key=False)
        hello.update(changes)
        return self.ask(hello)


def open_request(number=1, case=None, **changes):
    """Opens a case of two ranks, of which the server's is the second and the client opens the data connections."""
    return dict({"type": "open", "id": number, "rank": 1, "ranks": 2, "case": CASE if case is None else case, "accept": [0]},
                **changes)


def connect_request(offer=None, **changes):
    """`offer` is that of the client's rank."""
    offers = [{"wire": {}, "path": {}} if offer is None else offer, {}]
    return dict({"type": "connect", "id": 1, "offers": offers, "dial": []}, **changes)


def welcomed(port):
    """A client that the server serves."""
    client = RawClient(port)
    client.greet()
    answer = client.receive()
    assert answer and answer["type"] == "welcome", answer
    return client
