"""What was said of an item when it entered the feed, and how prices moved after that."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
import time_machine

from instruments.models import Instrument
from news.calibration.figures import ENOUGH, Figures, add_up
from news.calibration.settling import GIVEN_UP_AFTER, LATE_AFTER, SETTLED_AFTER, settle
from news.models import NewsItem, Outcome
from news.newsroom.decisions import override_score, publish, take_back
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
    prices = [Decimal(opened), Decimal(close or opened)]
    make_candle(
        instrument,
        timeframe,
        at,
        open=prices[0],
        close=prices[1],
        high=max(prices),
        low=min(prices),
    )


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


def test_an_item_is_judged_by_the_instruments_it_names_together(gold: Instrument) -> None:
    silver = make_instrument("XAGUSD", type="commodity")
    for instrument, after in ((gold, "101"), (silver, "103")):
        price(instrument, NOON, "100")
        price(instrument, NOON + 59 * MINUTE, after)
    publish_at(NOON, "gold", 0.5, gold, silver)
    assert settle_at(NOON + 2 * HOUR) == {"1h": pytest.approx(2.0)}


@pytest.mark.parametrize(
    ("title", "category", "symbol", "move"),
    [
        ("Euro rises", "forex", "EURUSD", 25.0),
        ("Dollar rises", "forex", "EURUSD", -20.0),
        ("Ether rises", "crypto", "BTCUSD", 25.0),
        ("Growth beats forecasts", "macro", "US500", 25.0),
    ],
)
def test_without_instruments_it_is_judged_by_its_categorys(
    title: str, category: str, symbol: str, move: float
) -> None:
    rise(make_instrument(symbol))
    publish_at(NOON, category, title=title)
    assert settle_at(NOON + 2 * HOUR) == {"1h": pytest.approx(move)}


@pytest.mark.parametrize(
    ("title", "move"),
    [("Yen slides", -20.0), ("USD/JPY climbs", 25.0), ("Dollar climbs to a high in yen", 25.0)],
)
def test_an_item_about_what_a_price_is_counted_in_is_judged_by_the_inverse(title: str, move: float) -> None:
    pair = make_instrument("USDJPY", digits=3)
    rise(pair)
    publish_at(NOON, "forex", 0.5, pair, title=title)
    assert settle_at(NOON + 2 * HOUR) == {"1h": pytest.approx(move)}


def test_an_item_about_oil_is_judged_by_what_it_means_for_stocks() -> None:
    oil = make_instrument("WTI", digits=2, type="commodity")
    rise(oil)
    publish_at(NOON, "macro", -0.5, oil, title="Oil jumps as OPEC cuts output")
    assert set(Outcome.objects.values_list("symbols", flat=True)) == {"US500"}


def test_where_no_price_tells_it_is_left_out_at_once() -> None:
    rise(make_instrument("EURUSD"))
    publish_at(NOON, "forex", title="Peso slumps to a record low")
    assert settle_at(NOON + 2 * HOUR) == {"1h": None}
    assert figures_of("forex", "bullish").left_out == 1


def rise(instrument: Instrument) -> None:
    price(instrument, NOON, "100")
    price(instrument, NOON + 59 * MINUTE, "125")


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
    publish_at_again(item)
    assert set(Outcome.objects.values_list("category", "label", "score")) == {("gold", "bullish", 0.5)}
    assert Outcome.objects.count() == 2


def publish_at_again(item: NewsItem) -> None:
    with time_machine.travel(NOON + 5 * HOUR, tick=False):
        publish(item, by="curator")


def test_every_group_is_there_also_without_items() -> None:
    found = add_up()
    assert len(found) == 4 * 3 * 2
    assert {(f.count, f.pending, f.left_out, f.mean_move_percent, f.hit_rate, f.too_few) for f in found} == {
        (0, 0, 0, None, None, True)
    }


def outcomes(label: str, *moves: float | None) -> None:
    item = make_news()
    for number, move in enumerate(moves):
        entered = NOON + number * MINUTE
        Outcome.objects.create(
            item=make_news() if number else item,
            horizon="1h",
            category="gold",
            score=0,
            label=label,
            symbols="XAUUSD",
            entered_at=entered,
            due_at=entered + HOUR,
            settled_at=entered + HOUR,
            move_percent=move,
        )


@pytest.mark.parametrize(
    ("moves", "mean", "median"),
    [
        ([1.0], 1.0, 1.0),
        ([1.0, 2.0], 1.5, 1.5),
        ([5.0, -1.0, 2.0], 2.0, 2.0),
        ([4.0, 0.0, 1.0, 2.0], 1.75, 1.5),
    ],
)
def test_mean_and_median(moves: list[float], mean: float, median: float) -> None:
    outcomes("bullish", *moves, None)
    found = figures_of("gold", "bullish")
    assert (found.mean_move_percent, found.median_move_percent) == (mean, median)
    assert (found.count, found.left_out) == (len(moves), 1)


@pytest.mark.parametrize(("label", "rate"), [("bullish", 0.5), ("bearish", 0.25), ("neutral", None)])
def test_a_hit_is_a_move_the_way_the_label_says(label: str, rate: float | None) -> None:
    outcomes(label, 1.0, 2.0, 0.0, -1.0)
    assert figures_of("gold", label).hit_rate == rate


def test_few_items_are_said_to_be_few() -> None:
    outcomes("bullish", *[1.0] * (ENOUGH - 1))
    assert figures_of("gold", "bullish").too_few
    outcomes("bullish", 1.0)
    assert not figures_of("gold", "bullish").too_few
