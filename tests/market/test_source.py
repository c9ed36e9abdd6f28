"""Whether the source was alive: what decides between a flat candle and none."""

from __future__ import annotations

import pytest

from market.engine.source import MOST_COMPLAINTS, SILENT_MS, Source
from tests.market.ticking import MINUTE_MS, NOON_MS


def heard_at(*moments_s: int) -> Source:
    source = Source()
    for moment_s in moments_s:
        source.heard(NOON_MS + moment_s * 1000)
    return source


def was_alive(source: Source, minute: int = 0) -> bool:
    start_ms = NOON_MS + minute * MINUTE_MS
    return source.was_alive(start_ms, start_ms + MINUTE_MS)


def test_never_heard_is_not_alive() -> None:
    assert not was_alive(Source())


def test_heard_before_and_in_a_minute_was_alive() -> None:
    assert was_alive(heard_at(-10, 20))


def test_heard_first_within_a_minute_was_not_alive_in_all_of_it() -> None:
    assert not was_alive(heard_at(1, 20))


@pytest.mark.parametrize(("last_s", "alive"), [(0, True), (-1, False)])
def test_silent_for_more_than_a_minute_is_not_alive(last_s: int, alive: bool) -> None:
    assert SILENT_MS == MINUTE_MS
    assert was_alive(heard_at(-30, last_s)) is alive


def test_silence_is_not_made_good_by_what_comes_after_it() -> None:
    assert not was_alive(heard_at(-30, 70))


def test_lost_is_not_alive_until_it_was_heard_for_a_whole_minute() -> None:
    source = heard_at(-30, 10)
    source.lost()
    source.heard(NOON_MS + 20_000)
    source.heard(NOON_MS + 70_000)

    assert not was_alive(source)
    assert was_alive(source, minute=1)


def test_what_staff_should_do_something_about_is_kept_once_and_until_the_connection_is_lost() -> None:
    source = Source()
    for _ in range(2):
        source.refuse("unknown_symbol", "DOGEUSDX is not served")
    source.refuse("malformed", "")
    for number in range(100):
        source.refuse("unknown_symbol", f"S{number} is not served")

    assert source.refused == {"unknown_symbol": 102, "malformed": 1}
    assert next(iter(source.complaints)) == "DOGEUSDX is not served"
    assert len(source.complaints) == MOST_COMPLAINTS
    source.lost(7, "gone")
    assert not source.complaints
