"""In one process, without Redis."""

from __future__ import annotations

import asyncio
import time

import pytest

from accounts.keys.caller import of_keys
from accounts.limits.tiers import change_tier, save_tier
from accounts.models import Tier
from accounts.open_streams.registry import OpenStreams
from accounts.open_streams.stream_slots import SlotRefusal
from core.events.event_feed import EventFeed
from core.threads import in_thread
from tests.core.events.following import follow
from tests.factories import make_account

from .claims import MARKET, SIGNALS, claimed, refused

pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def streams() -> OpenStreams:
    return OpenStreams()


async def said(ends: list[str]) -> list[str]:
    """What was heard once the loop has turned."""
    await asyncio.sleep(0)
    return ends


async def paths(streams: OpenStreams) -> list[str]:
    return [stream.path for stream in await streams.of("1")]


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


async def test_releasing_twice_is_harmless(streams: OpenStreams) -> None:
    slot = await claimed(streams)
    other = await claimed(streams)
    slot.release()
    slot.release()
    assert await streams.of("1") == [other.stream]


async def test_claim_at_the_limit_is_refused_with_what_is_open(streams: OpenStreams) -> None:
    for _ in range(2):
        await claimed(streams, limit=2)
    assert await refused(streams, limit=2) == SlotRefusal(limit=2, open=2)
    await claimed(streams, 2, limit=2)


async def test_released_slot_is_free_at_once(streams: OpenStreams) -> None:
    (await claimed(streams, limit=1)).release()
    await claimed(streams, limit=1)


async def test_takeover_replaces_the_oldest_on_the_same_path(streams: OpenStreams) -> None:
    ends: dict[int, list[str]] = {0: [], 1: [], 2: []}
    for number, path in enumerate((SIGNALS, MARKET, MARKET)):
        await claimed(streams, path=path, limit=3, on_end=ends[number].append)
    await claimed(streams, path=MARKET, limit=3, takeover=True)
    await said([])
    assert ends == {0: [], 1: ["taken_over"], 2: []}
    assert await paths(streams) == [SIGNALS, MARKET, MARKET]


async def test_takeover_without_the_path_replaces_the_oldest(streams: OpenStreams) -> None:
    ends: list[str] = []
    await claimed(streams, path=SIGNALS, limit=2, on_end=ends.append)
    await claimed(streams, path=SIGNALS, limit=2)
    await claimed(streams, path=MARKET, limit=2, takeover=True)
    assert await said(ends) == ["taken_over"]
    assert await paths(streams) == [SIGNALS, MARKET]


async def test_takeover_with_room_left_replaces_nobody(streams: OpenStreams) -> None:
    await claimed(streams, limit=2)
    await claimed(streams, limit=2, takeover=True)
    assert await streams.count() == 2


async def test_takeover_is_refused_where_the_tier_has_no_streams(streams: OpenStreams) -> None:
    assert (await refused(streams, limit=0, takeover=True)).open == 0


async def test_end_is_heard_after_the_claim_was_answered(streams: OpenStreams) -> None:
    told: list[str] = []
    await claimed(streams, limit=1, on_end=told.append)
    newcomer = asyncio.create_task(streams.claim("1", MARKET, 1, takeover=True, on_end=told.append))
    newcomer.add_done_callback(lambda task: told.append("answered"))
    await newcomer
    await streams.enforce("1", 0)
    await said(told)
    assert told == ["taken_over", "answered", "stream_limit_exceeded"]


async def test_stream_that_its_account_closes_is_not_said_to_be_taken_over(streams: OpenStreams) -> None:
    ends: list[str] = []
    slot = await claimed(streams, limit=1, on_end=ends.append)
    opened_at = round(slot.stream.opened_at, 6)
    streams.close({"account": 1, "path": slot.stream.path, "opened_at": opened_at})
    assert await said(ends) == ["stream_closed"]


async def test_released_slot_hears_nothing(streams: OpenStreams) -> None:
    ends: list[str] = []
    slot = await claimed(streams, on_end=ends.append)
    await streams.enforce("1", 0)
    slot.release()
    assert await said(ends) == []


async def test_a_broken_listener_does_not_spare_the_others(streams: OpenStreams) -> None:
    ends: list[str] = []
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: faults.append(context))
    await claimed(streams, on_end=lambda code: ends[99])
    await claimed(streams, on_end=ends.append)
    await streams.enforce("1", 0)
    assert await said(ends) == ["stream_limit_exceeded"]
    assert len(faults) == 1


async def test_lower_limit_ends_the_newest(streams: OpenStreams) -> None:
    ends: list[str] = []
    kept = [await claimed(streams, on_end=ends.append) for _ in range(2)]
    lost: list[str] = []
    for _ in range(8):
        await claimed(streams, on_end=lost.append)
    await streams.enforce("1", 2)
    assert await said(lost) == ["stream_limit_exceeded"] * 8
    assert ends == []
    assert await streams.of("1") == [slot.stream for slot in kept]


@pytest.mark.usefixtures("transactional_db")
@pytest.mark.parametrize("change", ["another tier", "the tier's limit"])
async def test_changed_tier_is_heard_of_and_enforced(change: str) -> None:
    feed = EventFeed()
    streams = OpenStreams()
    follow(feed, streams)
    account, other = await in_thread(make_account, tier="pro"), await in_thread(make_account, tier="premium")
    ends: list[str] = []
    for _ in range(5):
        await claimed(streams, account.pk, on_end=ends.append)
        await claimed(streams, other.pk)

    def lower() -> None:
        if change == "another tier":
            change_tier(account, Tier.objects.get(name="free"), by="test")
        else:
            pro = Tier.objects.get(name="pro")
            pro.streams = 2
            save_tier(pro, by="test")

    await feed.start()
    await in_thread(lower)
    await feed.read()
    await feed.stop()
    assert await said(ends) == ["stream_limit_exceeded"] * 3
    assert [len(await streams.of(of_keys(pk))) for pk in (account.pk, other.pk)] == [2, 5]
