"""Frames go straight to the numbers of sockets, and a number belongs to another as soon as it is given back:
none ever goes to a number that is not its connection's any more."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.programs.services import free_port
from tests.reliability.clients.measures import sockets
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation, Process, logged, tied, wait_until_healthy
from tests.reliability.services.stream_services import Flow, StreamService
from tests.serving.websocket.wires import CLOSE, TEXT, handshake, masked

SYMBOLS = [f"NUMBER{number}" for number in range(8)]
TICKS_A_SECOND, AT_ONCE, SEEN = 200, 100, 500
ENDS = ("http", "reset", "half-close", "abort", "protocol error", "slow", "close")
ASTRAY = "astray"
HTTP = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
# The test's own connection for asking, and one more of its kind.
SPARE = 2


class Astray(Exception):
    """Somebody heard what was not for them."""


class Counted(StreamService):
    """A service that counts what goes straight to a socket, and what would go to the wrong one."""

    def __init__(self, installation: Installation) -> None:
        super().__init__(installation, SYMBOLS)
        self._counts = installation.directory / "counts.json"

    @contextmanager
    def serving(self, **changes: str) -> Iterator[None]:
        log, port = self.installation.directory / "counted.log", free_port()
        environment = self.installation.environment(
            COUNTS=str(self._counts), DJANGO_SETTINGS_MODULE="config.settings", **changes
        )
        command = tied("-m", "tests.reliability.streams.serve_counted", "--port", str(port))
        with logged(command, log, environment) as process:
            self.servers.append(Process(port, process.pid, log))
            wait_until_healthy(process, self.servers[0])
            wait_until(lambda: self.push(self.make_ticks(SYMBOLS)))
            yield

    @property
    def counts(self) -> dict[str, int]:
        found: dict[str, int] = json.loads(self._counts.read_text())
        return found

    def visit(self, key: str, seed: int, is_enough: Callable[[Counter[str]], bool]) -> Counter[str]:
        """By clients that come, hear a little and go in every way there is, so that numbers change hands."""
        chosen, done = random.Random(seed), Counter[str]()  # noqa: S311

        async def visits() -> None:
            while not is_enough(done):
                how, symbol = chosen.choice(ENDS), chosen.choice(SYMBOLS)
                try:
                    await visit(self.servers[0].port, key, how, symbol)
                    done[how] += 1
                except Astray:
                    done[ASTRAY] += 1
                except (OSError, asyncio.IncompleteReadError):
                    continue

        async def run() -> None:
            await asyncio.gather(*(visits() for _ in range(AT_ONCE)))

        asyncio.run(run())
        return done


async def visit(port: int, key: str, how: str, symbol: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(PATIENCE_S):
            if how == "http":
                await ask(reader, writer)
                return
            writer.write(handshake(path="/ws/market"))
            await reader.readuntil(b"\r\n\r\n")
            message = {"action": "subscribe", "symbols": [symbol], "api_key": key}
            writer.write(masked(TEXT, json.dumps(message).encode()))
            await reader.readuntil(b'"subscribed"')
            if how == "slow":
                await asyncio.sleep(0.15)
                return
            await reader.readuntil(b'"bid"')
            await go(reader, writer, how)
    finally:
        writer.transport.abort()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """On a connection that stays for a while, and is due nothing but its answers."""
    for _ in range(3):
        writer.write(HTTP)
        answer = await reader.readuntil(b"}")
        if not answer.startswith(b"HTTP/1.1 ") or b'"bid"' in answer:
            raise Astray
        await asyncio.sleep(0.05)


async def go(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, how: str) -> None:
    match how:
        case "reset":
            made: socket.socket = writer.get_extra_info("socket")
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        case "half-close":
            writer.write_eof()
            await reader.read()
        case "protocol error":
            writer.write(b"\xff\xff\xff\xff")
            await reader.read()
        case "close":
            writer.write(masked(CLOSE, (1000).to_bytes(2, "big")))
            await reader.read()


@pytest.mark.row("63, sockets' numbers", "no frame sent to another socket, nothing left behind")
def test_no_frame_is_sent_to_a_reused_socket_number(embedded: Installation, tell: Tell, seed: int) -> None:
    check(embedded, tell, seed, SEEN)


def check(embedded: Installation, tell: Tell, seed: int, frames: int) -> None:
    """Over so many frames at least."""
    service = Counted(embedded)
    key = service.make_key()

    def is_enough(done: Counter[str]) -> bool:
        return service.counts["direct"] > frames and all(done[how] for how in ENDS)

    with service.serving(), Flow(service, TICKS_A_SECOND) as flow:
        before = sockets(service.servers[0].pid)
        done = service.visit(key, seed, is_enough)
        flow.stop()
        counts = service.counts
        # Row 63: whoever went has left nothing behind.
        wait_until(lambda: sockets(service.servers[0].pid) <= before + SPARE)
        wait_until(lambda: service.open_streams(key) == 0)
    tell(f"{counts['direct']:,} frames sent directly: {counts['wrong']} to the wrong socket")
    tell(f"ended by {', '.join(f'{how} {done[how]:,}' for how in ENDS)}")
    assert (counts["wrong"], done[ASTRAY]) == (0, 0)


@pytest.mark.row("sockets' numbers", "the control sees hundreds")
def test_control_without_notice_of_closed_sockets_frames_go_astray(
    embedded: Installation, tell: Tell, seed: int
) -> None:
    service = Counted(embedded)
    key = service.make_key()
    with service.serving(NOTICE="0"), Flow(service, TICKS_A_SECOND):
        service.visit(key, seed, lambda _: service.counts["wrong"] >= SEEN)
        counts = service.counts
    tell(f"{counts['direct']:,} frames sent directly, {counts['wrong']:,} of them to the wrong socket")
