"""A TCP proxy between client and server that can turn over bits of one byte on its way."""

import selectors
import socket
import threading

TO_SERVER, TO_CLIENT = "to server", "to client"


class Proxy:
    """Passes every connection on to the port on 127.0.0.1. On the data connections of cases, byte number `position`
    after the greeting in the given direction is xored with `mask`."""

    def __init__(self, server_port, direction=TO_SERVER, position=None, mask=0x01):
        self.flips = 0
        self._server_port, self._direction, self._position, self._mask = server_port, direction, position, mask
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in list(self._threads):
            thread.join(10)

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client):
        with client, socket.create_connection(("127.0.0.1", self._server_port)) as server:
            hello, answer = pass_message(client, server), pass_message(server, client)
            if not hello or not answer:
                return
            passed = {TO_SERVER: 0, TO_CLIENT: 0}
            ends = {client: (server, TO_SERVER), server: (client, TO_CLIENT)}
            with selectors.DefaultSelector() as selector:
                for end in ends:
                    selector.register(end, selectors.EVENT_READ)
                while True:
                    for key, _ in selector.select():
                        other, direction = ends[key.fileobj]
                        try:
                            data = bytearray(key.fileobj.recv(1 << 20))
                            if not data:
                                return
                            if b'"data"' in hello:
                                self._flip(data, direction, passed[direction])
                            passed[direction] += len(data)
                            other.sendall(data)
                        except OSError:
                            return

    def _flip(self, data, direction, offset):
        if self._position is None or direction != self._direction:
            return
        place = self._position - offset
        if 0 <= place < len(data):
            data[place] ^= self._mask
            self.flips += 1


def pass_message(source, target):
    """Passes one length-prefixed message on, and returns its text; empty when the connection ended."""
    header = receive(source, 4)
    text = receive(source, int.from_bytes(header, "big"))
    target.sendall(header + text)
    return text


def receive(source, count):
    data = b""
    while len(data) < count:
        part = source.recv(count - len(data))
        if not part:
            return b""
        data += part
    return data
