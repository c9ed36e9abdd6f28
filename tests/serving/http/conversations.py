"""The protocol of HTTP over a transport that notes what is written, with a short path of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from serving.http.bounds import END_OF_HEAD
from serving.http.protocol import HttpProtocol
from serving.http.short_path import STATE_NAME, Give, Headers, ShortPath, ShortPathProtocol
from serving.server import UVICORN_OPTIONS

from .serving import HOST, App


def text(body: bytes) -> Give:
    def give(asker: ShortPathProtocol) -> bool:
        asker.answer(b"", b"content-length: %d\r\n\r\n" % len(body), body)
        return True

    return give


class Texts(ShortPath):
    """Answers /short/… with what follows, and /later when the test says so."""

    found = recalled = 0
    asker: ShortPathProtocol
    """Who waits."""

    def __init__(self) -> None:
        super().__init__(self.look_up)

    def recall(self, head: bytes) -> Give | None:
        self.recalled += 1
        return super().recall(head)

    def wait(self, asker: ShortPathProtocol) -> bool:
        self.asker = asker
        asker.wait()
        return True

    def look_up(self, target: bytes, headers: Headers) -> Give | None:
        if target == b"/broken":
            raise ValueError("it is broken")
        if target == b"/later":
            return self.wait
        if not target.startswith(b"/short/"):
            return None
        self.found += 1
        return text(target.removeprefix(b"/short/"))


class WrittenTo(asyncio.Transport):
    """A transport that notes each write."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.writes: list[bytes] = []
        self.has_ended = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def writelines(self, pieces: Iterable[Any]) -> None:
        self.writes.append(b"".join(pieces))

    def is_closing(self) -> bool:
        return False

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        self.has_ended = True

    def write_eof(self) -> None:
        self.has_ended = True

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Conversation:
    def __init__(self) -> None:
        self.app, self.texts = App(), Texts()
        self.protocol, self.transport = connected(self.app, self.texts)

    def say(self, data: bytes) -> list[bytes]:
        """What is written at once."""
        self.transport.writes = []
        self.protocol.data_received(data)
        return self.transport.writes


def connected(app: Any, way: ShortPath) -> tuple[HttpProtocol, WrittenTo]:
    config = uvicorn.Config(app, log_config=None, access_log=False, **UVICORN_OPTIONS)
    config.load()
    protocol = HttpProtocol(config=config, server_state=ServerState(), app_state={STATE_NAME: way})
    transport = WrittenTo()
    protocol.connection_made(transport)
    return protocol, transport


def get(path: str, more: bytes = b"") -> bytes:
    return f"GET {path} HTTP/1.1\r\n".encode() + HOST + more + b"\r\n"


def bodies(written: bytes) -> list[bytes]:
    """Of answers whose bodies hold no blank line."""
    return [answer.partition(END_OF_HEAD)[2] for answer in written.split(b"HTTP/1.1 200 OK\r\n")[1:]]
