"""In one process, without Redis."""

from __future__ import annotations

import asyncio
import time

import pytest

from accounts.open_streams.registry import OpenStreams
from accounts.open_streams.stream_slots import SlotRefusal

from .claims import MARKET, SIGNALS, claimed, refused

pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def streams() -> OpenStreams:
    return OpenStreams()


async def said(ends: list[str]) -> list[str]:
    """What was heard once the loop has turned."""
    await asyncio.sleep(0)
    return ends


async def test_stream_is_known_from_claim_to_release(streams: OpenStreams) -> None:
    before = time.time()
    slot = await claimed(streams, 1, MARKET)
    await claimed(streams, 2, SIGNALS)
    (stream,) = await streams.of("1")
    assert (stream.counted_under, stream.path) == ("1", MARKET)
    assert before <= stream.opened_at <= time.time()
    assert await streams.count() == 2
    slot.release()
    assert (await streams.of("1"), await streams.count()) == ([], 1)


async def test_claim_at_the_limit_is_refused_until_a_slot_is_released(streams: OpenStreams) -> None:
    slot, other = await claimed(streams, limit=2), await claimed(streams, limit=2)
    assert await refused(streams, limit=2) == SlotRefusal(limit=2, open=2)
    assert (await refused(streams, 3, limit=0, takeover=True)).open == 0
    await claimed(streams, 2, limit=2)
    slot.release()
    slot.release()
    assert await streams.of("1") == [other.stream]
    await claimed(streams, limit=2)


@pytest.mark.parametrize(
    ("open_paths", "limit", "path", "replaced"),
    [
        ((SIGNALS, MARKET, MARKET), 3, MARKET, 1),
        ((SIGNALS, SIGNALS), 2, MARKET, 0),
        ((MARKET,), 2, MARKET, None),
    ],
    ids=["the oldest on the same path", "or else the oldest", "nobody with room left"],
)
async def test_takeover_replaces(
    streams: OpenStreams, open_paths: tuple[str, ...], limit: int, path: str, replaced: int | None
) -> None:
    ends: list[tuple[int, str]] = []
    for number, each in enumerate(open_paths):
        await claimed(
            streams, path=each, limit=limit, on_end=lambda code, number=number: ends.append((number, code))
        )
    await claimed(streams, path=path, limit=limit, takeover=True)
    await asyncio.sleep(0)
    assert ends == ([] if replaced is None else [(replaced, "taken_over")])
    left = [each for number, each in enumerate(open_paths) if number != replaced]
    assert [stream.path for stream in await streams.of("1")] == [*left, path]


async def test_end_is_heard_after_the_claim_was_answered(streams: OpenStreams) -> None:
    told: list[str] = []
    await claimed(streams, limit=1, on_end=told.append)
    newcomer = asyncio.create_task(streams.claim("1", MARKET, 1, takeover=True, on_end=told.append))
    newcomer.add_done_callback(lambda task: told.append("answered"))
    await newcomer
    await streams.enforce("1", 0)
    await said(told)
    assert told == ["taken_over", "answered", "stream_limit_exceeded"]


async def test_end_is_said_once_and_never_after_a_release(streams: OpenStreams) -> None:
    ends: list[str] = []
    ended, released = await claimed(streams, on_end=ends.append), await claimed(streams, on_end=ends.append)
    ended.end("taken_over")
    ended.end("stream_closed")
    released.end("taken_over")
    released.release()
    assert await said(ends) == ["taken_over"]


async def test_lower_limit_ends_the_newest_also_beside_a_broken_listener(streams: OpenStreams) -> None:
    ends: list[str] = []
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
    kept = [await claimed(streams) for _ in range(2)]
    await claimed(streams, on_end=lambda code: ends[99])
    for _ in range(7):
        await claimed(streams, on_end=ends.append)
    await streams.enforce("1", 2)
    assert await said(ends) == ["stream_limit_exceeded"] * 7
    assert len(faults) == 1
    assert await streams.of("1") == [slot.stream for slot in kept]
