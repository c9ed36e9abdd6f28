"""What may go from the stream, whatever is published, written and when."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from market.engine.bus.redis_bus import ENTRY_BYTES, KEEP_S, STEP_S, HeldEntries


class Entry(NamedTuple):
    number: int
    size: int
    at_s: float


MOST, MOST_SIZE = 10, 1_000
PAUSES_S, SIZES = st.floats(0, 90), st.integers(0, 300)
# After which pause an entry of which size comes, and how many of the newest the database lacks then.
Turns = list[tuple[float, int, int]]


def are_too_many(entries: list[Entry]) -> bool:
    return len(entries) > MOST or sum(entry.size for entry in entries) > MOST_SIZE


@given(st.lists(st.tuples(PAUSES_S, SIZES, st.integers(0, 12)), min_size=1, max_size=40), st.booleans())
def test_old_entries_that_are_written_go_where_there_is_too_much_and_no_others(
    turns: Turns, all_that_may: bool
) -> None:
    held, entries, now_s = HeldEntries(MOST, MOST_SIZE), list[Entry](), 0.0
    held.begin(-1, 0, now_s)
    for number, (pause_s, size, unwritten) in enumerate(turns):
        now_s += pause_s
        held.add(number, size, now_s)
        entries.append(Entry(number, size + ENTRY_BYTES, now_s))
        written = number - unwritten
        held.trim(written, now_s, all_that_may=all_that_may)

        def may_go(entry: Entry, written: int = written, now_s: float = now_s) -> bool:
            return entry.number <= written and now_s - entry.at_s > KEEP_S

        gone = [entry for entry in entries if entry.number < held.first]
        assert all(map(may_go, gone))
        assert not gone or all_that_may or are_too_many(entries)
        entries = entries[len(gone) :]
        if entries and (all_that_may or are_too_many(entries)):
            # Those of a few seconds go together.
            assert not all(may_go(entry) for entry in entries if entry.at_s <= entries[0].at_s + STEP_S)


def test_what_came_before_an_engine_goes_once_it_is_written_and_old() -> None:
    held = HeldEntries(MOST, MOST_SIZE)
    held.begin(1_000, 5, 0.0)
    firsts = []
    for written, now_s in ((1_000, KEEP_S), (999, KEEP_S + 1), (1_000, KEEP_S + 1)):
        held.trim(written, now_s)
        firsts.append(held.first)
    assert firsts == [0, 0, 1_001]
