"""News, order flow, averages and ranges, each by itself."""

from __future__ import annotations

import msgspec
import pytest

from analysis.drivers.candles import atr, ema, percentile
from analysis.drivers.order_flow import Flows
from analysis.drivers.published import weigh_news
from analysis.facts import FlowWindow
from core.times import MINUTE_MS
from market.prices.records import CandlesEnded, SeriesBegan, TickAccepted

from .made_facts import HOUR_MS, NOW_MS, make_bars, make_facts, make_news_fact


def taken(at_ms: int, delta: float, cumulative: float = 0.0, seq: int = 1) -> TickAccepted:
    bid, ask = max(0.0, -delta), max(0.0, delta)
    return TickAccepted("EURUSD", 1.08, 1.0802, at_ms, 1.0, 1, seq, bid, ask, cumulative)


def test_item_of_twelve_hours_ago_weighs_half() -> None:
    items = (make_news_fact(age_h=0, id=1), make_news_fact(age_h=12, id=2))
    evidence = weigh_news(make_facts(news=items)).evidence

    assert [each.weight for each in evidence.items] == [0.5, 0.25]  # type: ignore[union-attr]


def test_item_of_the_category_weighs_half_of_one_that_names_the_symbol() -> None:
    items = (make_news_fact(age_h=0, id=1), make_news_fact(age_h=0, id=2, names_symbol=False))
    found = weigh_news(make_facts(news=items))

    own, others = found.evidence.items  # type: ignore[union-attr]
    assert (own.relevance, others.relevance) == ("symbol", "category")
    assert others.weight == pytest.approx(own.weight / 2, abs=1e-3)


def test_good_news_of_the_currency_that_a_price_is_counted_in_are_bad_for_it() -> None:
    found = weigh_news(make_facts(news=(make_news_fact(0.6, age_h=0, side=-1),)))

    (item,) = found.evidence.items  # type: ignore[union-attr]
    assert found.score == pytest.approx(-0.4)
    assert (item.sentiment, item.sentiment_score, item.side) == ("bullish", 0.6, -1)


def test_lone_old_item_hardly_moves_the_score() -> None:
    fresh, old = (weigh_news(make_facts(news=(make_news_fact(0.9, age_h=age),))).score for age in (0, 70))

    assert fresh == pytest.approx(0.6)
    assert old is not None
    assert 0 < old < 0.04


def test_item_of_four_days_ago_is_none() -> None:
    assert weigh_news(make_facts(news=(make_news_fact(age_h=73),))).score is None


def test_flow_is_summed_by_windows_of_whole_minutes() -> None:
    flows = Flows()
    flows.hear([taken(NOW_MS - minutes * MINUTE_MS, 1.0, seq=minutes + 1) for minutes in (61, 59, 14, 4, 0)])
    flows.hear([taken(NOW_MS + 500, -3.0, cumulative=-7.5), CandlesEnded("EURUSD", NOW_MS)])

    fact = flows.of("EURUSD", NOW_MS + 1_000, has_sides=True)

    assert fact is not None
    assert fact.windows == (
        FlowWindow(5, 3.0, 2.0, 3),
        FlowWindow(15, 3.0, 3.0, 4),
        FlowWindow(60, 3.0, 4.0, 5),
    )
    assert (fact.cumulative_delta, fact.last_ms) == (-7.5, NOW_MS + 500)


def test_flow_from_a_clock_that_is_ahead_is_known_now() -> None:
    flows = Flows()
    flows.hear([taken(NOW_MS + 2_000, 1.0)])

    fact = flows.of("EURUSD", NOW_MS, has_sides=True)

    assert fact is not None
    assert (fact.since_ms, fact.last_ms) == (NOW_MS, NOW_MS)
    assert [window.count for window in fact.windows] == [1, 1, 1]


def test_cumulative_delta_of_yesterday_is_none_of_today() -> None:
    flows = Flows()
    flows.hear([taken(NOW_MS, 1.0, cumulative=9.0)])

    fact = flows.of("EURUSD", NOW_MS + 24 * HOUR_MS, has_sides=True)

    assert fact is not None
    assert fact.cumulative_delta is None
    assert sum(window.count for window in fact.windows) == 0


def test_tick_without_a_side_is_no_flow() -> None:
    flows = Flows()
    flows.hear([taken(NOW_MS, 0.0, seq=0)])

    assert flows.of("EURUSD", NOW_MS, has_sides=True) is None


def test_hour_with_a_gap_is_no_hour() -> None:
    flows = Flows()
    flows.hear([taken(NOW_MS, 1.0)])
    flows.begin("another epoch", {})

    assert flows.of("EURUSD", NOW_MS, has_sides=True) is None


def test_flow_begins_anew_with_another_series_of_its_symbol_alone() -> None:
    flows = Flows()
    other = msgspec.structs.replace(taken(NOW_MS, 1.0), symbol="XAUUSD")
    flows.hear(
        [taken(NOW_MS, 1.0), other, SeriesBegan("EURUSD", False, NOW_MS, 2), taken(NOW_MS + 1, -3.0, seq=3)]
    )

    euro, gold = (flows.of(symbol, NOW_MS + 1, has_sides=True) for symbol in ("EURUSD", "XAUUSD"))

    assert euro is not None
    assert (euro.windows[0], euro.since_ms) == (FlowWindow(5, 3.0, 0.0, 1), NOW_MS + 1)
    assert gold is not None
    assert gold.windows[0].ask_volume == 1.0


def test_average_begins_when_it_has_enough() -> None:
    assert ema([1.0, 2.0], 3) == []
    assert ema([1.0, 2.0, 3.0, 4.0], 3) == [2.0, 3.0]


def test_range_needs_a_bar_before() -> None:
    bars = make_bars("1h", [1.0] * 15, width=0.01)

    assert atr(bars[:14]) == []
    assert atr(bars) == pytest.approx([0.0199], abs=1e-4)


def test_range_counts_the_gap_to_the_bar_before() -> None:
    bars = make_bars("1h", [1.0] * 14 + [2.0], width=0.0)

    assert atr(bars)[-1] == pytest.approx(0.6931 / 14, abs=1e-4)


@pytest.mark.parametrize(("value", "rank"), [(1.0, 0.125), (4.0, 0.875), (9.0, 1.0), (0.0, 0.0)])
def test_percentile(value: float, rank: float) -> None:
    assert percentile([3.0, 1.0, 4.0, 2.0], value) == rank


def test_percentile_where_all_are_alike_is_the_middle() -> None:
    assert percentile([2.0] * 7, 2.0) == 0.5
