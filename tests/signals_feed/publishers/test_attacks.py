"""What once made records look good: each trick leads to figures and a rank that are not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
from time_machine import Traveller

from instruments.catalogue import catalogue
from instruments.models import Instrument, WithheldSource
from market.models import LastQuote
from signals_feed.ledger.guards import put_up_triggers, take_down_triggers
from signals_feed.models import LIFETIME, Signal
from signals_feed.publishers.lookup import find, scorecards
from signals_feed.publishers.record import Scorecard
from tests.factories import NOON, make_instruments, put_quote
from tests.signals_feed import filled_signals
from tests.signals_feed.published_signals import SELL, make_filled, make_lucky, make_publisher

pytestmark = [pytest.mark.django_db, pytest.mark.services]
PAIRS = 8
SYMBOLS = [f"FX{number}USD" for number in range(PAIRS)]
RISEN = (1.0865, 1.0866)


@pytest.fixture(autouse=True)
def _nothing_kept(own_market: None) -> Iterator[None]:
    scorecards.clear()
    yield
    scorecards.clear()


def card_of(name: str) -> Scorecard:
    publisher = find(name)
    assert publisher is not None
    return scorecards.read(publisher)


def hedge() -> list[Instrument]:
    """Buys and sells each instrument at once, and closes the winner by hand once the price has risen."""
    instruments, user = make_instruments(SYMBOLS), make_publisher("hedger")
    for instrument in instruments:
        make_filled(user, instrument=instrument, close_price=Decimal("1.0865"))
        make_filled(user, instrument=instrument, **(SELL | {"fill_price": SELL["entry"]}))
    return instruments


def assert_nothing_is_won() -> None:
    """Buys gained 0.72 R, and sells are 0.86 R behind."""
    figures = card_of("hedger").figures
    assert (figures.all.wins, figures.all.losses) == (PAIRS, PAIRS)
    assert figures.all.win_rate == Decimal("0.5")
    assert figures.all.total_r == PAIRS * (Decimal("0.7188") - Decimal("0.8621"))
    assert figures.drawdown.deepest_r == PAIRS * Decimal("0.8621")


def test_same_trade_31_times_within_minutes_is_one_result() -> None:
    user = make_publisher("copier")
    for number in range(31):
        price = Decimal("1.0900" if number else "1.0810")
        closed_at = NOON + timedelta(hours=1, minutes=number)
        make_filled(user, minute=number / 10, close_price=price, closed_at=closed_at)
    card = card_of("copier")
    assert (card.closed, card.figures.all.episodes, card.figures.all.too_few) == (31, 1, True)
    # Its first signal lost.
    assert (card.figures.all.wins, card.figures.all.total_r) == (0, Decimal(-1))
    make_lucky("patient", won=12, minute=600)
    assert card_of("patient").standings["venue"].is_told_from_luck


def test_open_losers_of_hedged_pairs_count() -> None:
    hedge()
    for symbol in SYMBOLS:
        put_quote(symbol, *RISEN)
    assert_nothing_is_won()
    assert not card_of("hedger").standings["venue"].is_told_from_luck


def test_losers_of_deactivated_instruments_count_at_their_last_quote() -> None:
    for instrument in hedge():
        LastQuote.objects.create(instrument=instrument, quoted_at=NOON, bid=RISEN[0], ask=RISEN[1])
        instrument.active = False
        instrument.save()
    catalogue.load_now()
    assert_nothing_is_won()


def test_no_figure_tells_a_price_that_is_withheld(clock: Traveller) -> None:
    hedge()
    for symbol in SYMBOLS:
        put_quote(symbol, *RISEN)
    WithheldSource.objects.create(name="push")
    catalogue.load_now()
    figures = card_of("hedger").figures
    assert (figures.all.open, figures.all.losses) == (PAIRS, 0)
    assert figures.all.total_r == PAIRS * Decimal("0.7188")
    # What has expired counts as stopped out.
    clock.shift(LIFETIME + timedelta(milliseconds=1))
    assert card_of("hedger").figures.all.total_r == PAIRS * Decimal("-0.2812")


def plant_wins(count: int, bid: Decimal) -> None:
    """One after the other."""
    user = make_publisher("forger")
    for later_ms in range(0, 3_000 * count, 3_000):
        filled = filled_signals.make_filled(user, later_ms=later_ms)
        filled_signals.reach_target(filled, bid, later_ms)


@pytest.mark.parametrize(("bid", "contradicted"), [("1.0901", 0), ("1.0800", 14)])
def test_wins_count_unless_their_evidence_contradicts_them(bid: str, contradicted: int) -> None:
    """Every trigger stands; the lower bid is beyond the stop."""
    plant_wins(14, Decimal(bid))
    card, holds = card_of("forger"), not contradicted
    assert card.standings["venue"].is_told_from_luck == holds
    assert card.contradicted == contradicted
    assert (card.figures.all.total_r > 0, card.best_r is not None) == (holds, holds)


def test_open_signal_whose_fill_is_false_may_lose_and_not_gain() -> None:
    filled_signals.make_filled(make_publisher("forger"), price=Decimal("1.0842"))
    put_quote("EURUSD", 1.0826, 1.0827)
    assert card_of("forger").figures.all.total_r == Decimal("-0.5")
    put_quote("EURUSD", 1.0890, 1.0891)
    card = card_of("forger")
    assert card.figures.all.total_r == 0
    assert card.standings["venue"].evidence == 1


def test_result_that_was_altered_after_it_was_judged_does_not_count() -> None:
    plant_wins(1, Decimal("1.0901"))
    assert card_of("forger").figures.all.wins == 1
    take_down_triggers()
    Signal.objects.update(close_price=Decimal("1.2"))
    put_up_triggers()
    scorecards.clear()
    assert card_of("forger").figures.all.total_r == 0
