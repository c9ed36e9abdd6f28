"""Claims as tests make them, and waiting for what follows from them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from accounts.keys.caller import of_keys
from accounts.open_streams.registry import OpenStreams
from accounts.open_streams.stream_slots import Slot, SlotRefusal
from tests.patience import PATIENCE_S

MARKET, SIGNALS = "/ws/market", "/ws/signals"


@asynccontextmanager
async def started() -> AsyncIterator[OpenStreams]:
    streams = OpenStreams()
    await streams.start()
    try:
        yield streams
    finally:
        await streams.stop()


def ignore(code: object) -> None:
    pass


async def answered(streams: OpenStreams, account_id: int, path: str, **options: Any) -> Slot | SlotRefusal:
    asked: dict[str, Any] = {"limit": 10, "on_end": ignore} | options
    return await streams.claim(of_keys(account_id), path, **asked)


async def claimed(streams: OpenStreams, account_id: int = 1, path: str = MARKET, **options: Any) -> Slot:
    slot = await answered(streams, account_id, path, **options)
    assert isinstance(slot, Slot)
    return slot


async def refused(
    streams: OpenStreams, account_id: int = 1, path: str = MARKET, **options: Any
) -> SlotRefusal:
    refusal = await answered(streams, account_id, path, **options)
    assert isinstance(refusal, SlotRefusal)
    return refusal


async def release(slots: Iterable[Slot]) -> None:
    for slot in slots:
        slot.release()


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await is_so():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
