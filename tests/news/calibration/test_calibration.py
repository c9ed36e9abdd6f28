"""What was said of an item when it entered the feed, and how prices moved after that."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
import time_machine

from instruments.models import Instrument
from news.calibration import (
    ENOUGH,
    GIVEN_UP_AFTER,
    LATE_AFTER,
    SETTLED_AFTER,
    Figures,
    add_up,
    category_of,
    settle,
    side_of,
)
from news.models import NewsItem, Outcome
from news.newsroom import override_score, publish, take_back
from tests.factories import NOON, make_candle, make_instrument, make_news

pytestmark = [pytest.mark.django_db, pytest.mark.services]
HOUR, DAY, MINUTE = timedelta(hours=1), timedelta(days=1), timedelta(minutes=1)


def publish_at(
    at: datetime, category: str = "gold", score: float = 0.5, *symbols: Instrument, title: str = "Prices move"
) -> NewsItem:
    item = make_news(title, status="draft", category=category, sentiment_score=score)
    item.symbols.set(symbols)
    with time_machine.travel(at, tick=False):
        publish(item, by="curator")
    return item


def price(instrument: Instrument, at: datetime, opened: str, close: str = "", timeframe: str = "1m") -> None:
    first, last = Decimal(opened), Decimal(close or opened)
    prices = {"open": first, "close": last, "high": max(first, last), "low": min(first, last)}
    make_candle(instrument, timeframe, at, **prices)


def rise(instrument: Instrument, to: str = "125") -> None:
    price(instrument, NOON, "100")
    price(instrument, NOON + 59 * MINUTE, to)


def settle_at(at: datetime) -> dict[str, float | None]:
    settle(at)
    settled = Outcome.objects.exclude(settled_at=None)
    return {outcome.horizon: outcome.move_percent for outcome in settled}


def figures_of(category: str, sentiment: str, horizon: str = "1h") -> Figures:
    (found,) = (f for f in add_up() if (f.category, f.sentiment, f.horizon) == (category, sentiment, horizon))
    return found


@pytest.fixture
def gold() -> Instrument:
    return make_instrument("XAUUSD", digits=2, type="commodity")


def test_the_move_is_from_the_first_price_after_to_the_last_before(gold: Instrument) -> None:
    publish_at(NOON + timedelta(seconds=30))
    # The minute under way when it entered holds prices of before; the one under way at the end, of after.
    price(gold, NOON, "90", "95")
    price(gold, NOON + MINUTE, "100", "101")
    price(gold, NOON + 59 * MINUTE, "101.5", "102")
    price(gold, NOON + HOUR, "150", "160")
    assert settle_at(NOON + 2 * HOUR) == {"1h": pytest.approx(2.0)}


def test_nothing_is_settled_before_its_horizon_has_passed(gold: Instrument) -> None:
    publish_at(NOON)
    price(gold, NOON, "100")
    price(gold, NOON + 59 * MINUTE, "102")
    assert settle_at(NOON + HOUR + SETTLED_AFTER - timedelta(seconds=1)) == {}
    assert settle_at(NOON + HOUR + SETTLED_AFTER) == {"1h": pytest.approx(2.0)}


def test_a_day_is_measured_by_minutes_and_where_they_are_gone_by_hours(gold: Instrument) -> None:
    publish_at(NOON)
    price(gold, NOON, "100", timeframe="1h")
    price(gold, NOON + 23 * HOUR, "102", "103", timeframe="1h")
    assert settle_at(NOON + DAY + 10 * MINUTE) == {"24h": pytest.approx(3.0)}


@pytest.mark.parametrize(
    ("title", "category", "symbol", "is_named", "move"),
    [
        ("Euro rises", "forex", "EURUSD", False, 25.0),
        ("Dollar rises", "forex", "EURUSD", False, -20.0),
        ("Ether rises", "crypto", "BTCUSD", False, 25.0),
        ("Growth beats forecasts", "macro", "US500", False, 25.0),
        # What a price is counted in is judged by the inverse.
        ("Yen slides", "forex", "USDJPY", True, -20.0),
        ("USD/JPY climbs", "forex", "USDJPY", True, 25.0),
        ("Dollar climbs to a high in yen", "forex", "USDJPY", True, 25.0),
        # Where no price tells, it is left out at once.
        ("Peso slumps to a record low", "forex", "EURUSD", False, None),
    ],
)
def test_an_item_is_judged_by_what_it_names_or_by_its_categorys_instrument(
    title: str, category: str, symbol: str, is_named: bool, move: float | None
) -> None:
    instrument = make_instrument(symbol, digits=3)
    rise(instrument)
    publish_at(NOON, category, 0.5, *[instrument] * is_named, title=title)
    assert settle_at(NOON + 2 * HOUR) == {"1h": move if move is None else pytest.approx(move)}
    assert figures_of(category, "bullish").left_out == (move is None)


def test_an_item_is_judged_by_the_instruments_it_names_together_and_oil_by_stocks(gold: Instrument) -> None:
    silver, oil = (make_instrument(symbol, type="commodity") for symbol in ("XAGUSD", "WTI"))
    rise(gold, "101")
    rise(silver, "103")
    publish_at(NOON, "gold", 0.5, gold, silver)
    assert settle_at(NOON + 2 * HOUR) == {"1h": pytest.approx(2.0)}
    publish_at(NOON, "macro", -0.5, oil, title="Oil jumps as OPEC cuts output")
    assert set(Outcome.objects.filter(category="macro").values_list("symbols", flat=True)) == {"US500"}


@pytest.mark.parametrize("minutes", [[0], [59], [20, 59], [0, 40], []])
def test_without_a_price_at_both_ends_it_is_left_out(gold: Instrument, minutes: Iterable[int]) -> None:
    publish_at(NOON)
    for minute in minutes:
        price(gold, NOON + minute * MINUTE, "100")
    # Prices may still be filled in from a venue's history, for a day.
    assert settle_at(NOON + HOUR + GIVEN_UP_AFTER) == {}
    assert settle_at(NOON + HOUR + GIVEN_UP_AFTER + MINUTE) == {"1h": None}
    assert (figures_of("gold", "bullish").count, figures_of("gold", "bullish").left_out) == (0, 1)


def test_what_waits_for_late_prices_is_passed_over_between(gold: Instrument) -> None:
    publish_at(NOON)
    now = NOON + HOUR + 20 * MINUTE
    assert settle(now, since=now - LATE_AFTER) == 0
    assert settle(now) == Outcome.objects.get(horizon="1h").pk


def test_what_is_said_later_changes_nothing(gold: Instrument) -> None:
    item = publish_at(NOON, score=0.5)
    override_score(item, -0.9, by="ada")
    NewsItem.objects.update(category="macro")
    take_back(item)
    with time_machine.travel(NOON + 5 * HOUR, tick=False):
        publish(item, by="curator")
    assert set(Outcome.objects.values_list("category", "label", "score")) == {("gold", "bullish", 0.5)}
    assert Outcome.objects.count() == 2


def outcomes(label: str, *moves: float | None) -> None:
    for number, move in enumerate(moves):
        entered = NOON + number * MINUTE
        settled = {"entered_at": entered, "due_at": entered + HOUR, "settled_at": entered + HOUR}
        said = {"category": "gold", "score": 0, "label": label, "symbols": "XAUUSD"}
        Outcome.objects.create(item=make_news(), horizon="1h", move_percent=move, **settled, **said)


@pytest.mark.parametrize(
    ("label", "moves", "mean", "median", "rate"),
    [
        ("bullish", [], None, None, None),
        ("bullish", [1.0], 1.0, 1.0, 1.0),
        ("bullish", [5.0, -1.0, 2.0, 0.0], 1.5, 1.0, 0.5),
        ("bearish", [5.0, -1.0, 0.0, -2.0], 0.5, -0.5, 0.5),
        ("neutral", [5.0, 0.0, 1.0], 2.0, 1.0, None),
    ],
)
def test_mean_median_and_how_many_moved_the_way_the_label_says(
    label: str, moves: list[float], mean: float | None, median: float | None, rate: float | None
) -> None:
    outcomes(label, *moves, None)
    found = figures_of("gold", label)
    assert (found.mean_move_percent, found.median_move_percent, found.hit_rate) == (mean, median, rate)
    assert (found.count, found.left_out, found.too_few) == (len(moves), 1, True)


def test_as_many_as_are_enough_are_not_few() -> None:
    outcomes("bullish", *[1.0] * (ENOUGH - 1))
    assert figures_of("gold", "bullish").too_few
    outcomes("bullish", 1.0)
    assert not figures_of("gold", "bullish").too_few


# Which way a score points for an instrument: what is good for the yen is bad for USDJPY.
@pytest.mark.parametrize(
    ("title", "category", "symbol", "kind", "side"),
    [
        ("Yen firms as intervention looms", "forex", "USDJPY", "forex", -1),
        ("USD/JPY drops as intervention looms", "forex", "USDJPY", "forex", 1),
        ("Dollar slips against the yen", "forex", "USDJPY", "forex", 1),
        ("Euro falls while the yen gains", "forex", "EURJPY", "forex", 1),
        ("Sterling and euro rise", "forex", "EURUSD", "forex", 0),
        ("EUR/JPY slips", "forex", "EURUSD", "forex", 1),
        ("Australian dollar eases", "forex", "AUDUSD", "forex", 1),
        ("Euro falls while the yen gains", "forex", "USDJPY", "forex", 0),
        ("Dollar firms, gold slips", "forex", "XAUUSD", "commodity", -1),
        # A pair is known however its symbol is written.
        *(("Yen firms", "forex", symbol, "forex", -1) for symbol in ("USD/JPY", "USD_JPY", "USDJPY.r")),
        ("Loonie gains on oil", "forex", "USDCAD", "forex", -1),
        ("Loonie gains on oil", "forex", "WTI", "commodity", 0),
        ("Gold gains as the yen slips", "gold", "XAUUSD", "commodity", 1),
        ("Gold gains as the yen slips", "gold", "USDJPY", "forex", 0),
        ("Bitcoin gains on gold", "crypto", "BTCUSD", "crypto", 1),
        ("Oil jumps as OPEC cuts output", "macro", "WTI", "commodity", 0),
        ("Oil jumps as OPEC cuts output", "macro", "US500", "index", 1),
        ("Nvidia beats estimates", "macro", "NVDA", "stock", 1),
    ],
)
def test_a_score_is_about_one_asset(title: str, category: str, symbol: str, kind: str, side: int) -> None:
    assert side_of(title, category, symbol, kind, is_named=True) == side


def test_without_a_currency_only_the_pair_that_staff_chose_is_meant() -> None:
    title = "Ministry of finance warns speculators"
    assert side_of(title, "forex", "USDJPY", "forex", is_named=True) == 1
    assert side_of(title, "forex", "USDJPY", "forex", is_named=False) == 0


@pytest.mark.parametrize(
    ("symbol", "kind", "category"),
    [("XAGUSD", "commodity", "gold"), ("WTI", "commodity", ""), ("AAPL", "stock", "macro")],
)
def test_category_of_an_instrument(symbol: str, kind: str, category: str) -> None:
    assert category_of(symbol, kind) == category
