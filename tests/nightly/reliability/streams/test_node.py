"""Node's `ws` on two web processes over Redis: a client that nobody here wrote."""

from __future__ import annotations

import itertools
import json
import queue
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.contract.streams import strangers
from tests.contract.streams.client import MARKET, ORDERFLOW, Frame
from tests.contract.streams.publishing import publish_signal
from tests.factories import make_user
from tests.patience import PATIENCE_S, wait_until
from tests.programs.npm import require_npm
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming

DIRECTORY = Path(__file__).parents[1] / "clients/node"


def require_node() -> None:
    require_npm(DIRECTORY)


class NodeSocket:
    def __init__(self, url: str, key: str = "") -> None:
        command = ["node", "client.mjs", url, key]
        self._process = subprocess.Popen(
            command, cwd=DIRECTORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._told: queue.Queue[dict[str, Any]] = queue.Queue()
        self.pings = 0
        threading.Thread(target=self._listen, daemon=True).start()
        assert self._next() == {"open": ""}, "an extension was agreed upon, or the socket did not open"

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            if "ping" in told:
                self.pings += 1
            else:
                self._told.put(told)

    def _next(self) -> dict[str, Any]:
        return self._told.get(timeout=PATIENCE_S)

    def send(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def hear(self) -> Frame:
        told = self._next()
        assert told.get("isBinary") is False, told
        frame: Frame = json.loads(told["heard"])
        return frame

    def closed(self) -> tuple[int, str]:
        code, reason = self._next()["closed"]
        self.end()
        return code, reason

    def leave(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        while "closed" not in (told := self._next()):
            pass
        # Whoever closes like this is answered in kind.
        assert told["closed"] == [1005, ""]

    def end(self) -> None:
        """And wait for the process, whatever state it is in."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


SYMBOL, LIMIT = "NODE", 3
# A ping every 10 s, and 15 s to answer it: who is still there by then answers.
KEPT_FOR_S = 26.0
NUMBERED = (MARKET, ORDERFLOW)
EACH = (*NUMBERED, strangers.SIGNALS)
pytestmark = pytest.mark.row("client: Node ws", "no deviation from the specification")


@pytest.fixture(scope="module")
def service(scaled: Installation) -> Iterator[StreamService]:
    require_node()
    with streaming(scaled, 2, [SYMBOL]) as running:
        yield running


class NodeWorld:
    """Each socket opens on the other process."""

    symbol = SYMBOL

    def __init__(self, service: StreamService, sockets: ExitStack) -> None:
        self.key = service.make_key(streams=LIMIT)
        self._service, self._sockets = service, sockets
        self._ports = itertools.cycle([server.port for server in service.servers])

    def open(self, path: str) -> NodeSocket:
        socket = NodeSocket(f"ws://127.0.0.1:{next(self._ports)}{path}")
        self._sockets.callback(socket.end)
        return socket

    def tick(self, count: int = 1) -> None:
        self._service.tick(SYMBOL, count)

    def publish_signal(self) -> None:
        with self._service.installation.orm():
            publish_signal(SYMBOL, make_user())


@pytest.fixture
def world(service: StreamService) -> Iterator[NodeWorld]:
    with ExitStack() as sockets:
        yield NodeWorld(service, sockets)


@pytest.mark.parametrize("path", EACH)
def test_node_receives_exactly_the_fields_of_the_specification(world: NodeWorld, path: str) -> None:
    strangers.hears_exactly_the_fields_of_the_specification(world, path)


@pytest.mark.parametrize("path", EACH)
def test_node_is_refused_with_the_specified_code_and_reason(world: NodeWorld, path: str) -> None:
    strangers.is_refused_with_code_and_reason(world, path)


def test_an_oversized_message_closes_the_connection(world: NodeWorld) -> None:
    strangers.is_ended_with_1009_by_a_message_that_is_too_big(world)


@pytest.mark.parametrize("path", NUMBERED)
def test_node_resumes_on_another_process(world: NodeWorld, path: str) -> None:
    strangers.resumes_where_it_was(world, path)


@pytest.mark.parametrize("path", EACH)
def test_node_is_replaced_by_a_newcomer_on_another_process(world: NodeWorld, path: str) -> None:
    strangers.is_taken_over(world, path, LIMIT)


def test_node_stays_connected_when_pinged(world: NodeWorld, tell: Tell) -> None:
    socket = world.open(MARKET)
    assert strangers.subscribe(socket, world)["type"] == "subscribed"
    kept_s = wait_until(lambda: socket.pings >= 2, KEPT_FOR_S)
    kept_s += wait_until(lambda: socket.pings >= 3, KEPT_FOR_S)
    world.tick()
    assert socket.hear()["symbol"] == SYMBOL
    tell(f"{socket.pings} pings answered in {kept_s:.0f} s")
    socket.leave()
