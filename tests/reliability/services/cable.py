"""The cable between a process and its servers, which a test may pull out and put in again."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

CHUNK = 65_536


class Cable:
    """While it is cut, connections stay open and nothing arrives, in either direction. What is sent on a long
    one comes late."""

    def __init__(self, to: int, late_s: float = 0.0) -> None:
        self.to, self._late_s = to, late_s
        """The port that new connections lead to."""
        self._is_whole = threading.Event()
        self._is_whole.set()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def cut(self) -> Iterator[None]:
        self._is_whole.clear()
        try:
            yield
        finally:
            self._is_whole.set()

    def close(self) -> None:
        self._is_whole.set()
        for end in (self._server, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._server.accept()
                threading.Thread(target=self._connect, args=(here,), daemon=True).start()

    def _connect(self, here: socket.socket) -> None:
        self._is_whole.wait()
        try:
            there = socket.create_connection(("127.0.0.1", self.to))
        except OSError:
            here.close()
            return
        self._ends += here, there
        for source, to, late_s in ((here, there, self._late_s), (there, here, 0.0)):
            threading.Thread(target=self._pass, args=(source, to, late_s), daemon=True).start()

    def _pass(self, source: socket.socket, to: socket.socket, late_s: float) -> None:
        with suppress(OSError):
            while data := source.recv(CHUNK):
                # What comes meanwhile is not later than this by more than as much again.
                time.sleep(late_s)
                self._is_whole.wait()
                to.sendall(data)
        for end in (source, to):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
