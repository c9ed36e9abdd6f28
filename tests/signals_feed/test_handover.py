"""From what is replayed to what is live: whoever comes, whenever, hears each announcement once."""

from __future__ import annotations

import asyncio
from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from market.streams.announced_stream import LOOKING_BACK_AT_ONCE, Announced
from tests.patience import PATIENCE_S

from .announcing import Journal, heard, join, make_announced, make_stream

pytestmark = pytest.mark.services

SYMBOLS = ("EURUSD", "XAUUSD")
WANTED: tuple[set[str], ...] = (
    {"*"},
    {"EURUSD"},
    {"EURUSD", "XAUUSD"},
    {"*", "closed/*"},
    {"EURUSD", "closed/EURUSD"},
)


@st.composite
def journals(draw: st.DrawFn) -> list[Announced]:
    """Positions have holes: other control events are between them."""
    position, rows = 0, []
    for step, symbol, closed in draw(
        st.lists(st.tuples(st.integers(1, 3), st.sampled_from(SYMBOLS), st.booleans()), max_size=12)
    ):
        position += step
        rows.append(make_announced(position, symbol, closed=closed))
    return rows


def due(rows: list[Announced], after: int, topics: set[str]) -> list[int]:
    return [row.position for row in rows if row.position > after and row.topics & topics]


async def come_back(
    rows: list[Announced],
    *,
    there: int,
    told: int,
    since: int,
    comes_after: int,
    topics: set[str],
    pauses: list[int],
) -> tuple[list[int], list[int], int]:
    """What a returning client hears, what one present from the start hears, and since when."""
    journal = Journal(rows[:there], cycle(pauses or [0]))
    after = rows[since - 1].position if since else 0
    stream = make_stream(journal, position=rows[told - 1].position if told else 0)
    began_at = stream.position
    (_, always), (subscriber, line) = join(stream, *topics), join(stream)

    async def commit() -> None:
        for row in rows[there:]:
            await journal.pause()
            journal.rows.append(row)
            await stream.send_new()

    async def client() -> None:
        for _ in range(comes_after):
            await asyncio.sleep(0)
        await stream.replay(subscriber, await stream.look_back(after), topics, 0)

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(commit(), client(), stream.send_new())
    stream.hub.flush()
    assert journal.longest <= 2
    assert due(rows, after, topics) == heard(line)
    return heard(always), due(rows, began_at, topics), after


@settings(max_examples=300)
@given(
    st.data(),
    journals(),
    st.sampled_from(WANTED),
    st.lists(st.integers(0, 3), max_size=6),
    st.integers(0, 12),
)
def test_who_comes_back_hears_all_it_missed_once_and_in_order(
    data: st.DataObject, rows: list[Announced], topics: set[str], pauses: list[int], comes_after: int
) -> None:
    """This process may be behind the database, and behind the one that the client came from."""
    there = data.draw(st.integers(0, len(rows)))
    told, since = data.draw(st.integers(0, there)), data.draw(st.integers(0, there))
    always, expected, _ = asyncio.run(
        come_back(
            rows, there=there, told=told, since=since, comes_after=comes_after, topics=topics, pauses=pauses
        )
    )
    assert always == expected


async def test_what_a_client_hears_already_is_not_replayed_to_it() -> None:
    rows = [make_announced(1), make_announced(2, "XAUUSD"), make_announced(3)]
    stream = make_stream(Journal(rows), position=3)
    subscriber, line = join(stream, "EURUSD")
    await stream.replay(subscriber, await stream.look_back(0), {"*"}, 0)
    assert heard(line) == [2]


async def test_who_hears_all_of_it_already_makes_nobody_read_on() -> None:
    journal = Journal([make_announced(number) for number in range(1, 9)])
    stream = make_stream(journal, position=8)
    subscriber, line = join(stream, "*", "closed/*")
    await stream.replay(subscriber, await stream.look_back(0), {"*"}, 0)
    assert (heard(line), journal.reads, set(subscriber.topics)) == ([], 1, {"*"})


async def test_crowd_that_comes_back_waits_for_each_other_and_not_in_the_queue_of_all() -> None:
    journal = Journal([make_announced(1)], cycle([3]))
    stream = make_stream(journal, position=1)
    looking = [asyncio.create_task(stream.look_back(0)) for _ in range(300)]
    await asyncio.sleep(0)
    assert journal.reads <= LOOKING_BACK_AT_ONCE
    found = [missed.found for missed in await asyncio.gather(*looking)]
    assert found == [journal.rows] * 300


async def test_closures_that_are_asked_for_later_are_replayed_alone() -> None:
    rows = [make_announced(1), make_announced(2, closed=True)]
    stream = make_stream(Journal(rows), position=2)
    subscriber, line = join(stream, "EURUSD")
    await stream.replay(subscriber, await stream.look_back(0), {"EURUSD", "closed/EURUSD"}, 0)
    assert heard(line) == [2]


async def test_what_a_client_heard_before_goes_on_while_more_is_replayed() -> None:
    journal = Journal([make_announced(number) for number in range(1, 6)], cycle([3]))
    stream = make_stream(journal, position=5)
    subscriber, line = join(stream, "XAUUSD")
    replaying = asyncio.create_task(stream.replay(subscriber, await stream.look_back(0), {"*"}, 0))
    await asyncio.sleep(0)
    journal.rows.append(make_announced(6, "XAUUSD"))
    await stream.send_new()
    await replaying
    stream.hub.flush()
    assert sorted(heard(line)) == [1, 2, 3, 4, 5, 6]


async def test_replay_reads_on_only_as_its_client_reads() -> None:
    journal = Journal([make_announced(number) for number in range(1, 9)])
    stream = make_stream(journal, position=8)
    subscriber, line = join(stream)
    line.is_full = True
    replaying = asyncio.create_task(stream.replay(subscriber, await stream.look_back(0), {"*"}, 0))
    for _ in range(20):
        await asyncio.sleep(0)
    assert heard(line) == [1, 2]
    line.read()
    await replaying
    assert heard(line) == list(range(1, 9))


async def test_replay_ends_with_its_client() -> None:
    journal = Journal([make_announced(number) for number in range(1, 9)])
    stream = make_stream(journal, position=8)
    subscriber, line = join(stream)
    line.is_full = True
    replaying = asyncio.create_task(stream.replay(subscriber, await stream.look_back(0), {"*"}, 0))
    for _ in range(20):
        await asyncio.sleep(0)
    subscriber.ended()
    await replaying
    assert (heard(line), journal.reads, stream.hub.members) == ([1, 2], 1, 0)
