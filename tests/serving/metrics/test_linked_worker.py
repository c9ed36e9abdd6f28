"""How long the supervisor waits for what its workers say."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from serving.metrics.linked_worker import LinkedWorker, ask_all
from serving.metrics.snapshots import Snapshot
from tests.patience import PATIENCE_S

WORD = Snapshot([])
SOON_S = 0.001


@pytest.fixture
async def writer() -> AsyncIterator[asyncio.StreamWriter]:
    """Nobody answers at the other end."""
    ours, theirs = socket.socketpair()
    _, writer = await asyncio.open_unix_connection(sock=ours)
    with theirs:
        yield writer
    writer.close()
    await writer.wait_closed()


def make_worker(writer: asyncio.StreamWriter, number: int, *, is_started: bool = True) -> LinkedWorker:
    worker = LinkedWorker(number, writer)
    if is_started:
        worker.hear(WORD)
    return worker


async def test_worker_that_starts_is_not_waited_for(writer: asyncio.StreamWriter) -> None:
    async with asyncio.timeout(PATIENCE_S):
        assert await ask_all([make_worker(writer, 1, is_started=False)], None) == ({}, [])


async def test_worker_that_hangs_is_silent_and_the_others_are_told(writer: asyncio.StreamWriter) -> None:
    hanging, answering = make_worker(writer, 1), make_worker(writer, 2)
    # What was said before it was asked is no answer.
    asked = asyncio.create_task(ask_all([hanging, answering], SOON_S))
    await asyncio.sleep(0)
    answering.hear(WORD)
    assert await asked == ({"2": WORD}, ["1"])


async def test_worker_that_ends_is_waited_for_no_longer(writer: asyncio.StreamWriter) -> None:
    links = [make_worker(writer, 1)]
    asked = asyncio.create_task(ask_all(links, None))
    await asyncio.sleep(0)
    links.pop().end()
    async with asyncio.timeout(PATIENCE_S):
        assert await asked == ({}, [])


async def test_who_asks_meanwhile_shares_the_answer(writer: asyncio.StreamWriter) -> None:
    hanging, answering = make_worker(writer, 1), make_worker(writer, 2)
    first = asyncio.create_task(ask_all([hanging, answering], None))
    await asyncio.sleep(0)
    answering.hear(WORD)
    second = asyncio.create_task(ask_all([hanging], None))
    await asyncio.sleep(0)
    answering.ask()
    hanging.hear(WORD)
    assert await first == ({"1": WORD, "2": WORD}, [])
    assert await second == ({"1": WORD}, [])
