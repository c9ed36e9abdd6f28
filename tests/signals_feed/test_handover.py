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
    told, since = ((0, *(row.position for row in rows))[data.draw(st.integers(0, there))] for _ in range(2))

    async def come_back() -> None:
        journal = Journal(rows[:there], cycle(pauses or [0]))
        stream = make_stream(journal, position=told)
        (_, always), (subscriber, line) = join(stream, *topics), join(stream)

        async def commit() -> None:
            for row in rows[there:]:
                await journal.pause()
                journal.rows.append(row)
                await stream.send_new()

        async def client() -> None:
            for _ in range(comes_after):
                await asyncio.sleep(0)
            await stream.replay(subscriber, await stream.look_back(since), topics, 0)

        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(commit(), client(), stream.send_new())
        stream.hub.flush()
        assert journal.longest <= 2
        assert (heard(line), heard(always)) == (due(rows, since, topics), due(rows, told, topics))

    asyncio.run(come_back())


@pytest.mark.parametrize(
    ("hears", "wants", "replayed"),
    [
        ({"EURUSD"}, {"*"}, [2, 4]),
        ({"EURUSD"}, {"EURUSD", "closed/EURUSD"}, [3]),
        ({"*", "closed/*"}, {"*"}, []),
    ],
    ids=["other symbols", "closures", "nothing"],
)
async def test_what_a_client_hears_already_is_not_replayed_to_it(
    hears: set[str], wants: set[str], replayed: list[int]
) -> None:
    rows = [make_announced(1), make_announced(2, "XAUUSD"), make_announced(3, closed=True)]
    journal = Journal([*rows, make_announced(4, "XAUUSD")])
    stream = make_stream(journal, position=4)
    subscriber, line = join(stream, *hears)
    await stream.replay(subscriber, await stream.look_back(0), wants, 0)
    assert heard(line) == replayed
    if not replayed:
        assert journal.reads == 1


async def test_crowd_that_comes_back_waits_for_each_other_and_not_in_the_queue_of_all() -> None:
    journal = Journal([make_announced(1)], cycle([3]))
    stream = make_stream(journal, position=1)
    looking = [asyncio.create_task(stream.look_back(0)) for _ in range(300)]
    await asyncio.sleep(0)
    assert journal.reads <= LOOKING_BACK_AT_ONCE
    found = [missed.found for missed in await asyncio.gather(*looking)]
    assert found == [journal.rows] * 300


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


@pytest.mark.parametrize("leaves", [False, True])
async def test_replay_reads_on_only_as_its_client_reads_and_ends_with_it(leaves: bool) -> None:
    journal = Journal([make_announced(number) for number in range(1, 9)])
    stream = make_stream(journal, position=8)
    subscriber, line = join(stream)
    line.is_full = True
    replaying = asyncio.create_task(stream.replay(subscriber, await stream.look_back(0), {"*"}, 0))
    for _ in range(20):
        await asyncio.sleep(0)
    assert (heard(line), journal.reads) == ([1, 2], 1)
    if leaves:
        subscriber.ended()
    else:
        line.read()
    await replaying
    assert heard(line) == ([1, 2] if leaves else list(range(1, 9)))
    assert stream.hub.members == (not leaves)
