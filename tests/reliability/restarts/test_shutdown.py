"""Row 35: SIGTERM with sockets and requests under way: all are told, all are answered, and then it ends."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import socket
import time
from collections import Counter
from typing import Any

import pytest

from market.push.keys import issue_ingest_key
from tests.patience import PATIENCE_S, until
from tests.reliability.clients.swarm import listen_many
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming
from tests.reliability.services.supervised import command_of, is_all_read

SOCKETS, REQUESTS = 50, 10
numbers = itertools.count(1)
pytestmark = pytest.mark.row("35", "no connection dropped without a close code (1006), no request failed")


class Begun:
    """A request of which half is sent."""

    def __init__(self, port: int, headers: str, body: bytes) -> None:
        self._kernel = socket.create_connection(("127.0.0.1", port))
        self._kernel.settimeout(PATIENCE_S)
        head = f"POST /ingest/ticks HTTP/1.1\r\n{headers}\r\nContent-Length: {len(body)}\r\n\r\n"
        self._kernel.sendall(head.encode() + body[: len(body) // 2])
        self._rest = body[len(body) // 2 :]

    def finish(self) -> int:
        """The status; 0 where no answer came."""
        with self._kernel, self._kernel.makefile("rb") as answer:
            try:
                self._kernel.sendall(self._rest)
                line = answer.readline().split()
            except OSError:
                return 0
            return int(line[1]) if len(line) > 1 else 0


def stop_with_all_under_way(
    installation: Installation, number: signal.Signals, sockets: int = SOCKETS
) -> tuple[Counter[int], Counter[int], float]:
    """With which codes the sockets were closed, how the requests were answered, and how long it took."""
    with streaming(installation, symbols=[f"SHUT{next(numbers)}"]) as service:
        with installation.orm():
            secret = issue_ingest_key("late", by="test")[1]
        headers = f"Host: localhost\r\nX-Ingest-Key: {secret}\r\nContent-Type: application/json"
        message = {"action": "subscribe", "symbols": service.symbols, "api_key": service.make_key()}
        return asyncio.run(stop(service, message, headers, number, sockets))


async def stop(
    service: StreamService, message: dict[str, Any], headers: str, number: signal.Signals, sockets: int
) -> tuple[Counter[int], Counter[int], float]:
    server = service.servers[0]
    listeners = await listen_many([server.port], "/ws/market", message, sockets)
    body = json.dumps({"ticks": service.make_ticks(service.symbols)}).encode()
    begun = [Begun(server.port, headers, body) for _ in range(REQUESTS)]
    await until(lambda: is_all_read(server.port))
    os.kill(server.pid, number)
    began_at = time.monotonic()
    endings = [asyncio.ensure_future(listener.ended) for listener in listeners]
    async with asyncio.timeout(PATIENCE_S):
        # It is stopping for certain, and all its requests are still under way.
        await asyncio.wait(endings, return_when=asyncio.FIRST_COMPLETED)
        statuses = Counter(await asyncio.gather(*(asyncio.to_thread(one.finish) for one in begun)))
        codes = Counter(await asyncio.gather(*endings))
    await until(lambda: not command_of(server.pid))
    return codes, statuses, time.monotonic() - began_at


def test_every_client_is_notified_and_every_request_answered(either: Installation, tell: Tell) -> None:
    codes, statuses, _ = stop_with_all_under_way(either, signal.SIGTERM)
    tell(f"closed with {dict(codes)}, answered {dict(statuses)}")
    assert (codes, statuses) == ({1012: SOCKETS}, {200: REQUESTS})


def test_control_clients_of_a_killed_process_are_not_notified(embedded: Installation, tell: Tell) -> None:
    codes, statuses, _ = stop_with_all_under_way(embedded, signal.SIGKILL)
    tell(f"killed: closed with {dict(codes)}, answered {dict(statuses)}")
    assert (codes, statuses) == ({1006: SOCKETS}, {0: REQUESTS})
