"""Which of an instrument's feeds is let in."""

from __future__ import annotations

import pytest

from market.engine.source import GONE_MS, STEADY_MS, Choice, Source, feeds_of
from tests.market.ticking import NOON_MS, make_facts

FACTS = make_facts()
STALE_MS = FACTS.stale_after_s * 1000


def make_choice(*feeds: str) -> Choice:
    return Choice(feeds or ("kraken", "binance"), NOON_MS)


def admit(choice: Choice, origin: str, after_ms: int, **sources: Source) -> str | None:
    return choice.admit(origin, NOON_MS + after_ms, FACTS, sources)


def stalled() -> Choice:
    """Its source was silent for too long, and the fallback has taken over."""
    choice = make_choice()
    admit(choice, "kraken", 0)
    assert admit(choice, "binance", STALE_MS + 1) is None
    return choice


@pytest.mark.parametrize(
    ("source", "fallback", "feeds"),
    [
        ("", "", ("demo",)),
        ("kraken", "", ("kraken",)),
        ("kraken:XBT/USD", "binance:BTCUSDT", ("kraken", "binance")),
        ("", "replay", ("demo", "replay")),
        ("push:desk", "push", ("push:desk", "push")),
        ("kraken:A", "kraken:B", ("kraken",)),
    ],
)
def test_instrument_names_its_feeds(source: str, fallback: str, feeds: tuple[str, ...]) -> None:
    assert feeds_of(source, fallback, "demo") == feeds


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
    choice, lost = make_choice(), Source()
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
