from __future__ import annotations

import pytest

from market.engine.files.separated import HISTDATA

from .reading import ms, read


def test_documented_line_is_a_quote_five_hours_later_in_utc() -> None:
    (tick,) = read(HISTDATA, "20120201 000003660,1.306600,1.306770,0\n").ticks

    assert (tick.symbol, tick.bid, tick.ask, tick.volume) == ("EURUSD", 1.3066, 1.30677, 0.0)
    assert tick.time_ms == ms("2012-02-01T05:00:03.660")


def test_summer_has_the_same_offset() -> None:
    (tick,) = read(HISTDATA, "20120701 120000000,1.3,1.4,0\n").ticks

    assert tick.time_ms == ms("2012-07-01T17:00")


def test_evening_belongs_to_the_next_day() -> None:
    (tick,) = read(HISTDATA, "20121231 235959999,1.3,1.4,0\n").ticks

    assert tick.time_ms == ms("2013-01-01T04:59:59.999")


def test_carriage_returns_and_a_missing_last_newline_are_nothing() -> None:
    assert len(read(HISTDATA, "20120201 000003660,1.3,1.4,0\r\n20120201 000004660,1.3,1.4,0").ticks) == 2


@pytest.mark.parametrize(
    "line",
    [
        "20120201 000003660,1.3066",
        "20120201 000003660,1.3066,1.30677,0,0",
        "20120201 000003660,,1.30677,0",
        "20120201 000003660,1_3,1.30677,0",
        "20120230 000003660,1.3066,1.30677,0",
        "20120201 250003660,1.3066,1.30677,0",
        "20120201 000060000,1.3066,1.30677,0",
        "20120201 0000-3660,1.3066,1.30677,0",
        "20120201 00000366,1.3066,1.30677,0",
        "\ufffd\u0000",
    ],
)
def test_bad_line_is_named_and_those_around_it_are_read(line: str) -> None:
    good = "20120201 000003660,1.3066,1.30677,0"

    found = read(HISTDATA, f"{good}\n{line}\n\n{good}\n{good}\n")

    assert (found.malformed, found.lines) == ([2], [1, 4, 5])
    assert len(found.ticks) == 3
