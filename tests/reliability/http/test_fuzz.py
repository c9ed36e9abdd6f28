"""Bytes that are nearly HTTP or WebSocket: no unhandled exception, no hang, no descriptor left."""

from __future__ import annotations

import errno
import random
import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pytest_django import DjangoDbBlocker

from tests.factories import make_account, make_key, make_tier
from tests.patience import wait_until
from tests.reliability.clients.strangers import ask, connect
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation, Process

from .corpus import CORPUS, altered, in_segments, with_known_heads

ROUNDS, PROBE_EVERY = 12, 50
# What the service opens for itself meanwhile: its database, for one.
SPARE_FILES = 20


@pytest.fixture(scope="module")
def key(embedded_for_module: Installation, django_db_blocker: DjangoDbBlocker) -> bytes:
    with django_db_blocker.unblock(), embedded_for_module.orm():
        return make_key(make_account(tier=make_tier("roomy", requests_per_minute=1_000_000))).encode()


@pytest.fixture(scope="module")
def server(embedded_for_module: Installation, key: bytes) -> Iterator[Process]:
    with embedded_for_module.web_process(LOG_LEVEL="WARNING") as running:
        yield running


def open_files(server: Process) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


def say(server: Process, segments: list[bytes], stays: bool) -> int:
    """The status of the first answer, 0 if there is none; it does not wait for more."""
    heard = b""
    with connect(server.port) as client, suppress(ConnectionError):
        for segment in segments:
            client.sendall(segment)
        if not stays:
            end_sending(client)
            heard = client.recv(65536)
    return int(heard[9:12]) if heard[:5] == b"HTTP/" else 0


def end_sending(client: socket.socket) -> None:
    try:
        client.shutdown(socket.SHUT_WR)
    except OSError as error:
        # The server has reset it: Linux calls that something else here than in `recv`.
        if error.errno != errno.ENOTCONN:
            raise


@pytest.mark.row("17, 38", "no unhandled exception, no hang, no file descriptor left open")
@pytest.mark.parametrize("is_known", [False, True], ids=["of strangers", "behind known heads"])
def test_almost_valid_bytes_break_nothing(
    server: Process, key: bytes, is_known: bool, seed: int, tell: Tell
) -> None:
    heard = breaks_nothing(server, with_known_heads(key) if is_known else CORPUS, seed, range(ROUNDS))
    tell(f"{heard.total()} conversations, first answers {dict(sorted(heard.items()))}")


def breaks_nothing(server: Process, corpus: list[bytes], seed: int, rounds: Iterable[int]) -> Counter[int]:
    """The first answers to so many rounds of conversations."""
    chance, heard = random.Random(seed), Counter[int]()
    with connect(server.port) as client:
        assert ask(client) == 200
    before = open_files(server)
    for _ in rounds:
        for _ in range(PROBE_EVERY):
            heard[say(server, in_segments(altered(chance, corpus), chance), chance.random() < 0.2)] += 1
        # Others are served all the while.
        with connect(server.port) as client:
            assert ask(client) == 200
    wait_until(lambda: open_files(server) <= before + SPARE_FILES)
    said = server.log.read_text()
    assert heard[500] == 0
    assert "Traceback" not in said, said[said.find("Traceback") - 300 :][:3000]
    assert "could not be" not in said
    return heard
