"""News, order flow, averages, ranges, levels and what a model says, each by itself."""

from __future__ import annotations

import msgspec
import pytest

from analysis.analysts import identifiers_of_healthy
from analysis.drivers.candles import atr, ema, percentile
from analysis.drivers.order_flow import Flows
from analysis.drivers.published import weigh_news
from analysis.facts import Facts, FlowWindow, QuoteFact
from analysis.levels import levels_of, turns
from analysis.opinion import invented_numbers
from core.times import MINUTE_MS
from market.prices.records import CandlesEnded, SeriesBegan, TickAccepted

from .made_facts import HOUR_MS, NOW_MS, make_bars, make_facts, make_news_fact, mirrored

ZIGZAG = make_bars("1h", [1.10, 1.11, 1.12, 1.13, 1.12, 1.11, 1.10, 1.09, 1.08, 1.09, 1.10, 1.11] * 6, 0.0001)


def taken(at_ms: int, delta: float, cumulative: float = 0.0, seq: int = 1) -> TickAccepted:
    bid, ask = max(0.0, -delta), max(0.0, delta)
    return TickAccepted("EURUSD", 1.08, 1.0802, at_ms, 1.0, 1, seq, bid, ask, cumulative)


def test_older_item_and_one_of_the_category_alone_weigh_less() -> None:
    aged = (make_news_fact(age_h=0, id=1), make_news_fact(age_h=12, id=2))
    evidence = weigh_news(make_facts(news=aged)).evidence
    assert [each.weight for each in evidence.items] == [0.5, 0.25]  # type: ignore[union-attr]

    named = (make_news_fact(age_h=0, id=1), make_news_fact(age_h=0, id=2, names_symbol=False))
    own, others = weigh_news(make_facts(news=named)).evidence.items  # type: ignore[union-attr]
    assert (own.relevance, others.relevance) == ("symbol", "category")
    assert others.weight == pytest.approx(own.weight / 2, abs=1e-3)


def test_good_news_of_the_currency_that_a_price_is_counted_in_are_bad_for_it() -> None:
    found = weigh_news(make_facts(news=(make_news_fact(0.6, age_h=0, side=-1),)))

    (item,) = found.evidence.items  # type: ignore[union-attr]
    assert found.score == pytest.approx(-0.4)
    assert (item.sentiment, item.sentiment_score, item.side) == ("bullish", 0.6, -1)


def test_lone_old_item_hardly_moves_the_score_and_one_of_four_days_ago_not_at_all() -> None:
    scores = [weigh_news(make_facts(news=(make_news_fact(0.9, age_h=age),))).score for age in (0, 70, 73)]
    assert scores[0] == pytest.approx(0.6)
    assert 0 < (scores[1] or 0) < 0.04
    assert scores[2] is None


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


def test_tick_without_a_side_and_an_hour_with_a_gap_are_no_flow() -> None:
    flows = Flows()
    flows.hear([taken(NOW_MS, 0.0, seq=0)])
    assert flows.of("EURUSD", NOW_MS, has_sides=True) is None
    flows.hear([taken(NOW_MS, 1.0)])
    assert flows.of("EURUSD", NOW_MS, has_sides=True) is not None
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


def test_range_needs_a_bar_before_and_counts_the_gap_to_it() -> None:
    bars = make_bars("1h", [1.0] * 15, width=0.01)
    assert atr(bars[:14]) == []
    assert atr(bars) == pytest.approx([0.0199], abs=1e-4)
    jump = make_bars("1h", [1.0] * 14 + [2.0], width=0.0)
    assert atr(jump)[-1] == pytest.approx(0.6931 / 14, abs=1e-4)


@pytest.mark.parametrize(("value", "rank"), [(1.0, 0.125), (4.0, 0.875), (9.0, 1.0), (0.0, 0.0)])
def test_percentile(value: float, rank: float) -> None:
    assert percentile([3.0, 1.0, 4.0, 2.0], value) == rank
    assert percentile([2.0] * 7, 2.0) == 0.5


def zigzag_at(bid: float) -> Facts:
    return make_facts(bars={"1h": ZIGZAG}, quote=QuoteFact(bid, bid + 0.0002, NOW_MS))


def test_turns_are_levels_on_the_side_where_they_are_now() -> None:
    levels = levels_of(zigzag_at(1.0999))
    assert [(each.price, each.touches) for each in levels.supports] == [(1.07989, 6)]
    assert [(each.price, each.touches) for each in levels.resistances] == [(1.13011, 6)]
    broken = levels_of(zigzag_at(1.1399))
    assert ([each.price for each in broken.supports], broken.resistances) == ([1.13011, 1.07989], [])


def test_levels_of_the_mirror_image_are_mirrored() -> None:
    one = zigzag_at(1.0999)
    levels, mirror = levels_of(one), levels_of(mirrored(one))
    bands, inverse = levels.atr_bands, mirror.atr_bands
    assert mirror.resistances[0].price == pytest.approx(1 / levels.supports[0].price, abs=1e-5)
    assert mirror.resistances[0].touches == levels.supports[0].touches
    assert bands is not None
    assert inverse is not None
    assert inverse.upper_1 == pytest.approx(1 / bands.lower_1, abs=1e-5)
    assert bands.lower_2 < bands.lower_1 < 1.1 < bands.upper_1 < bands.upper_2


def test_last_bars_are_no_turn_before_others_have_shown_it() -> None:
    assert [len(list(turns(ZIGZAG[:many]))) for many in (11, 12)] == [1, 2]


class Model:
    def __init__(self, identifier: str, healthy: bool) -> None:
        self.identifier, self.is_healthy = identifier, lambda: healthy


def test_models_are_those_that_are_healthy_now_each_once() -> None:
    lexicon, ailing = Model("lexicon-1", True), Model("ailing-1", False)
    assert identifiers_of_healthy([lexicon, ailing, lexicon]) == ["lexicon-1"]
    assert identifiers_of_healthy([ailing]) == []


@pytest.mark.parametrize(
    ("summary", "invented"),
    [
        ("Support is near 1.0845, and the score is 0.31.", []),
        ("Support is near 1.08.", []),
        ("News weighs 30 % of it.", []),
        ("The volume was 12,500 lots.", []),
        ("Support is near 1.0846.", ["1.0846"]),
        ("It will reach 2 and then 1.5.", ["2", "1.5"]),
        ("Nothing in figures.", []),
    ],
)
def test_numbers_that_are_nowhere_in_the_data_are_invented(summary: str, invented: list[str]) -> None:
    material = {"levels": [1.0845], "score": 0.31, "weight": 0.3, "text": "12500 lots"}
    assert list(invented_numbers(summary, material)) == invented
