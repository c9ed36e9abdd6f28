"""Which of an instrument's feeds is let in, and whether its source was alive: what decides on flat
candles."""

from __future__ import annotations

import pytest

from core.times import MINUTE_MS
from market.engine.admission import (
    GONE_MS,
    MOST_COMPLAINTS,
    SILENT_MS,
    STEADY_MS,
    FeedChoice,
    FeedState,
)
from tests.market.ticking import NOON_MS, make_facts


def heard_at(*moments_s: int) -> FeedState:
    feed_state = FeedState()
    for moment_s in moments_s:
        feed_state.heard(NOON_MS + moment_s * 1000)
    return feed_state


def was_alive(feed_state: FeedState, minute: int = 0) -> bool:
    start_ms = NOON_MS + minute * MINUTE_MS
    return feed_state.was_alive(start_ms, start_ms + MINUTE_MS)


def test_never_heard_is_not_alive() -> None:
    assert not was_alive(FeedState())


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
    feed_state = heard_at(-30, 10)
    feed_state.lost()
    feed_state.heard(NOON_MS + 20_000)
    feed_state.heard(NOON_MS + 70_000)

    assert not was_alive(feed_state)
    assert was_alive(feed_state, minute=1)


def test_what_staff_should_do_something_about_is_kept_once_and_until_the_connection_is_lost() -> None:
    feed_state = FeedState()
    for _ in range(2):
        feed_state.refuse("unknown_symbol", "DOGEUSDX is not served")
    feed_state.refuse("malformed", "")
    for number in range(100):
        feed_state.refuse("unknown_symbol", f"S{number} is not served")

    assert feed_state.refused == {"unknown_symbol": 102, "malformed": 1}
    assert next(iter(feed_state.complaints)) == "DOGEUSDX is not served"
    assert len(feed_state.complaints) == MOST_COMPLAINTS
    feed_state.lost(7, "gone")
    assert not feed_state.complaints


FACTS = make_facts()
STALE_MS = FACTS.stale_after_s * 1000


def make_choice(*feeds: str) -> FeedChoice:
    return FeedChoice(feeds or ("kraken", "binance"), NOON_MS)


def admit(choice: FeedChoice, origin: str, after_ms: int, **feed_states: FeedState) -> str | None:
    return choice.admit(origin, NOON_MS + after_ms, FACTS, feed_states)


def stalled() -> FeedChoice:
    """Its source was silent for too long, and the fallback has taken over."""
    choice = make_choice()
    admit(choice, "kraken", 0)
    assert admit(choice, "binance", STALE_MS + 1) is None
    return choice


def test_source_is_let_in_and_its_fallback_stands_by() -> None:
    choice = make_choice()

    assert admit(choice, "kraken", 0) is None
    assert admit(choice, "binance", 1) == "standby"


def test_feed_that_the_instrument_does_not_name_is_kept_out() -> None:
    assert admit(make_choice(), "oanda", 0) == "not_its_source"


@pytest.mark.parametrize(
    ("feed", "origin", "reason"),
    [
        ("push", "push:desk", None),
        ("push:desk", "push:desk", None),
        ("push:desk", "push:other", "not_its_source"),
        ("push:desk", "push:desktop", "not_its_source"),
        ("push:desk", "push", "not_its_source"),
    ],
)
def test_push_may_be_of_anybody_or_of_one_key(feed: str, origin: str, reason: str | None) -> None:
    assert admit(make_choice(feed), origin, 0) == reason


@pytest.mark.parametrize(("after_ms", "reason"), [(STALE_MS, "standby"), (STALE_MS + 1, None)])
def test_fallback_takes_over_once_the_source_is_stale(after_ms: int, reason: str | None) -> None:
    choice = make_choice()
    admit(choice, "kraken", 0)

    assert admit(choice, "binance", after_ms) == reason


@pytest.mark.parametrize(("after_ms", "reason"), [(GONE_MS, "standby"), (GONE_MS + 1, None)])
def test_lost_connection_hands_over_sooner(after_ms: int, reason: str | None) -> None:
    choice, lost = make_choice(), FeedState()
    lost.lost(NOON_MS, "closed")

    assert admit(choice, "binance", after_ms, kraken=lost) == reason


def test_hand_over_can_be_seen() -> None:
    choice = stalled()

    assert (choice.feed, choice.switches, choice.switched_ms) == ("binance", 1, NOON_MS + STALE_MS + 1)


def test_source_that_is_back_must_hold_before_it_is_let_in_again() -> None:
    choice, back_ms = stalled(), STALE_MS + 60_000

    reasons = [admit(choice, "kraken", back_ms + after_ms) for after_ms in range(0, STEADY_MS + 1, 1000)]

    assert reasons == ["standby"] * 10 + [None]
    assert (choice.feed, choice.switches) == ("kraken", 2)


def test_source_that_comes_and_goes_does_not_get_it_back() -> None:
    choice, back_ms = stalled(), STALE_MS + 60_000
    step_ms = STEADY_MS + 1

    reasons = {admit(choice, "kraken", back_ms + number * step_ms) for number in range(10)}

    assert reasons == {"standby"}


def test_nobody_is_expected_to_send_before_the_market_opens() -> None:
    stock, opens_ms = make_facts(hours="stock"), NOON_MS + 9_000_000
    choice = make_choice()

    reasons = [
        choice.admit("binance", opens_ms + after_ms, stock, {}) for after_ms in (0, STALE_MS, STALE_MS + 1)
    ]

    assert stock.hours.session_at(opens_ms - 1) is None
    assert reasons == ["standby", "standby", None]
