from __future__ import annotations

import pytest

from market.engine.files.separated import QUOTES

from .reading import ms, read

AT = ms("2026-11-18T12:00:00.250")


def first_ms(stamp: str) -> int:
    return read(QUOTES, f"timestamp,bid,ask\n{stamp},1.1,1.2\n").ticks[0].time_ms


@pytest.mark.parametrize(
    "stamp",
    [
        str(AT),
        "2026-11-18T12:00:00.250Z",
        "2026-11-18 12:00:00.250",
        "2026-11-18T12:00:00.250999999Z",
        "2026-11-18T14:00:00.250+02:00",
        "2026-11-18T07:00:00.25-05:00",
    ],
)
def test_time_is_milliseconds_or_iso_8601(stamp: str) -> None:
    assert first_ms(stamp) == AT


def test_sizes_offered_are_no_volume() -> None:
    (tick,) = read(QUOTES, f"Timestamp, Bid, Ask, Bid_Size, Ask_Size\n{AT},1.1,1.2,5000000,7\n").ticks

    assert (tick.bid, tick.ask, tick.volume) == (1.1, 1.2, 0.0)


def test_byte_order_mark_of_a_spreadsheet_is_nothing() -> None:
    assert read(QUOTES, f"\ufefftimestamp,bid,ask\n{AT},1.1,1.2\n").lines == [2]


@pytest.mark.parametrize("stamp", ["1795003200", "yesterday", "", "2026-13-01"])
def test_seconds_and_other_words_are_no_time(stamp: str) -> None:
    found = read(QUOTES, f"timestamp,bid,ask\n{stamp},1.1,1.2\n{AT},1.1,1.2\n")

    assert (found.malformed, found.lines) == ([2], [3])


def test_line_with_one_size_is_malformed() -> None:
    assert read(QUOTES, f"timestamp,bid,ask\n{AT},1.1,1.2,5\n").malformed == [2]
