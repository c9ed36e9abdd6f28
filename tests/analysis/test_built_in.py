"""The built-in model: a pure function of frozen facts."""

from __future__ import annotations

from math import fsum, isfinite
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from msgspec.structs import replace

from analysis.analysts import identifiers_of_healthy, invented_numbers
from analysis.answer import Analysis, Driver
from analysis.built_in import agreement, analyse, clarity, levels_of, turns
from analysis.drivers import Flows, atr, ema, percentile, weigh_news
from analysis.facts import AnalysedBar, Facts, FlowFact, FlowWindow, QuoteFact
from core.times import MINUTE_MS, iso_ms
from market.prices.records import CandlesEnded, SeriesBegan, TickAccepted
from news.labels import sentiment_label

from .made_facts import (
    HOUR_MS,
    NOW_MS,
    make_all_bars,
    make_bars,
    make_facts,
    make_flow,
    make_news_fact,
    make_signal_fact,
    mirrored,
    rising,
)

EMPTY = Facts("EURUSD", 5, "forex", NOW_MS, "stale")
ANY_NUMBER = st.floats(allow_nan=True, allow_infinity=True)
prices = st.floats(0.0001, 200_000)
factors = st.lists(st.floats(0.97, 1.03), min_size=0, max_size=90)


def walk(start: float, steps: list[float]) -> list[float]:
    closes = [start] if steps else []
    for step in steps:
        closes.append(closes[-1] * step)
    return closes


walks = st.builds(lambda start, steps: walk(start, steps), st.floats(0.01, 100_000), factors)
flows = st.none() | st.builds(make_flow, st.floats(0, 1e9), st.floats(0, 1e9), st.integers(1, 10_000))
items = st.lists(st.builds(make_news_fact, st.floats(-1, 1), st.floats(0, 80)), max_size=5).map(tuple)
sides = st.lists(st.sampled_from((1, -1)).map(make_signal_fact), max_size=5).map(tuple)
facts = st.builds(
    lambda closes, flow, news, signals, state: make_facts(
        bars=make_all_bars(closes),
        quote=QuoteFact(closes[-1] * 0.9999, closes[-1] * 1.0001, NOW_MS) if closes else None,
        flow=flow,
        news=news,
        signals=signals,
        state=state,
    ),
    walks,
    flows,
    items,
    sides,
    st.sampled_from(("open", "closed", "stale")),
)


def driver(analysis: Analysis, name: str) -> Driver:
    return next(each for each in analysis.drivers if each.name == name)


def numbers(value: Any) -> list[float]:
    """All that stand anywhere in it."""
    if isinstance(value, dict):
        return [number for part in value.values() for number in numbers(part)]
    if isinstance(value, list):
        return [number for part in value for number in numbers(part)]
    return [value] if isinstance(value, int | float) else []


def test_market_where_all_is_bullish_is_bullish() -> None:
    analysis = analyse(make_facts())
    assert analysis.direction == "bullish"
    assert [each.direction for each in analysis.drivers if each.weight] == ["bullish"] * 4
    assert analysis.weights_sum == 1
    assert analysis.confidence > 0.5


def test_nothing_known_is_neutral_without_any_confidence() -> None:
    analysis = analyse(EMPTY)
    assert (analysis.direction, analysis.score, analysis.confidence) == ("neutral", 0, 0)
    assert "with a score of 0.0 and" in analysis.summary
    assert "turning points" not in analysis.summary
    assert analysis.weights_sum == 0
    assert not any(each.available or each.weight or each.evidence for each in analysis.drivers)
    assert (analysis.price, analysis.levels.atr_bands, analysis.levels.day) == (None, None, None)


@given(facts)
@examples(max_examples=30)
def test_mirror_image_of_the_facts_mirrors_the_answer(one: Facts) -> None:
    answer, mirror = analyse(one), analyse(mirrored(one))
    assert mirror.score == pytest.approx(-answer.score, abs=0.0021)
    assert mirror.confidence == pytest.approx(answer.confidence, abs=0.02)
    assert mirror.weights_sum == answer.weights_sum
    for mine, others in zip(answer.drivers, mirror.drivers, strict=True):
        assert others.score == pytest.approx(-mine.score, abs=0.0021)


@given(facts)
@examples(max_examples=30)
def test_answer_follows_from_itself(one: Facts) -> None:
    analysis = analyse(one)
    assert msgspec.json.encode(analyse(one)) == msgspec.json.encode(analysis)
    assert -1 <= analysis.score <= 1
    assert 0 <= analysis.confidence <= 1
    assert analysis.direction == sentiment_label(analysis.score)
    assert analysis.score == pytest.approx(fsum(each.contribution for each in analysis.drivers), abs=0.001)
    assert analysis.weights_sum == pytest.approx(fsum(each.weight for each in analysis.drivers))
    assert all(each.weight == 0 for each in analysis.drivers if not each.available)


@given(
    st.lists(st.tuples(ANY_NUMBER, ANY_NUMBER, ANY_NUMBER), max_size=70),
    st.tuples(ANY_NUMBER, ANY_NUMBER),
    st.lists(ANY_NUMBER, max_size=3),
    st.tuples(ANY_NUMBER, ANY_NUMBER),
)
@examples(max_examples=60)
def test_whatever_comes_in_no_answer_holds_what_is_no_number(
    candles: list[tuple[float, float, float]],
    quote: tuple[float, float],
    scores: list[float],
    stops: tuple[float, float],
) -> None:
    bars = tuple(
        AnalysedBar(NOW_MS - (len(candles) - number) * HOUR_MS, *prices)
        for number, prices in enumerate(candles)
    )
    signal = replace(make_signal_fact(), entry=stops[0], stop_loss=stops[1])
    analysis = analyse(
        make_facts(
            bars={"1h": bars},
            quote=QuoteFact(*quote, NOW_MS),
            news=tuple(make_news_fact(score) for score in scores),
            signals=(signal,),
            day=bars[-1] if bars else None,
        )
    )
    assert all(isfinite(number) for number in numbers(msgspec.to_builtins(analysis)))
    assert "nan" not in analysis.summary.lower().split()


@given(facts, st.integers(1, 10 * HOUR_MS))
@examples(max_examples=15)
def test_what_comes_later_changes_nothing(one: Facts, later_ms: int) -> None:
    seen = {
        "bars": {
            name: (*bars, AnalysedBar(NOW_MS - NOW_MS % HOUR_MS + HOUR_MS, 9e9, 8e9, 9e9))
            for name, bars in one.bars.items()
        },
        "news": (*one.news, make_news_fact(-1, age_h=-later_ms / HOUR_MS)),
        "signals": (*one.signals, replace(make_signal_fact(-1), published_ms=NOW_MS + later_ms)),
    }
    assert analyse(replace(one, **seen)) == analyse(one)


def test_candles_are_as_recent_as_the_finest_of_them() -> None:
    day, ended_ms = make_bars("1d", rising()), NOW_MS - 20 * HOUR_MS
    fine = tuple(replace(bar, opened_ms=bar.opened_ms - 20 * HOUR_MS) for bar in make_bars("15m", rising()))
    assert analyse(make_facts(bars={"1d": day, "15m": fine})).as_of.candles == iso_ms(ended_ms)


def test_candle_that_still_forms_is_left_out() -> None:
    closed = make_bars("1h", rising())
    forming = AnalysedBar(NOW_MS - HOUR_MS + 1, 2.0, 1.0, 1.9)
    assert analyse(make_facts(bars={"1h": (*closed, forming)})) == analyse(make_facts(bars={"1h": closed}))


@pytest.mark.parametrize(("surer", "less_sure"), [("open", "closed"), ("closed", "stale"), ("open", "stale")])
def test_market_that_is_not_fresh_lowers_the_confidence_alone(surer: str, less_sure: str) -> None:
    fresh, old = (analyse(make_facts(state=state)) for state in (surer, less_sure))
    assert old.confidence < fresh.confidence
    assert (old.score, old.drivers, old.levels) == (fresh.score, fresh.drivers, fresh.levels)


@pytest.mark.parametrize(
    ("missing", "name", "weight"),
    [
        ({"news": ()}, "news", 0.3),
        ({"flow": None}, "order_flow", 0.15),
        ({"signals": ()}, "signals", 0.2),
        ({"bars": {}}, "trend", 0.35),
    ],
)
def test_missing_data_leave_a_hole_that_is_told(missing: dict[str, Any], name: str, weight: float) -> None:
    whole, part = analyse(make_facts()), analyse(make_facts(**missing))
    assert not driver(part, name).available
    assert driver(part, name).evidence is None
    assert part.weights_sum == pytest.approx(1 - weight)
    assert part.score == pytest.approx(whole.score - driver(whole, name).contribution, abs=0.001)
    assert part.confidence < whole.confidence
    assert driver(part, name).text in part.summary


def test_contradiction_and_a_wild_hour_lower_the_confidence() -> None:
    calm = make_facts()
    quarrelling = make_facts(news=(make_news_fact(-0.9),), signals=(make_signal_fact(-1),))
    wild = make_bars("1h", rising())[:-20] + make_bars("1h", rising(), width=0.01)[-20:]
    answer = analyse(replace(calm, bars={**calm.bars, "1h": wild}))
    assert analyse(quarrelling).confidence < analyse(calm).confidence
    assert answer.confidence < analyse(calm).confidence
    assert driver(answer, "volatility").text.startswith("The average hourly range is ")
    assert driver(answer, "volatility").weight == 0


def test_fall_after_a_rise_shows_on_the_fine_timeframe_first() -> None:
    closes = rising()
    falling = [close * 1.08 / 1.02 for close in [*closes[:60], *rising(60, -0.001, 1.02)]]
    found = analyse(make_facts(bars={"15m": make_bars("15m", falling), "4h": make_bars("4h", closes)}))
    assert driver(found, "trend").text == "The trend is up on 4h, down on 15m."


@pytest.mark.parametrize(("candles", "weight"), [(59, 0), (60, 0.35)])
def test_trend_needs_sixty_candles(candles: int, weight: float) -> None:
    bars = make_all_bars(rising(candles))
    assert driver(analyse(make_facts(bars=bars)), "trend").weight == weight


def test_market_that_never_moved_has_no_trend_and_divides_by_nothing() -> None:
    still = {"1h": tuple(AnalysedBar(bar.opened_ms, 1.0, 1.0, 1.0) for bar in make_bars("1h", [1.0] * 120))}
    for bars in (make_all_bars([1.08] * 120), still):
        assert driver(analyse(make_facts(bars=bars, quote=QuoteFact(1.08, 1.08, NOW_MS))), "trend").score == 0


def pressed(**flow: Any) -> Driver:
    return driver(analyse(make_facts(flow=make_flow(**flow))), "order_flow")


def test_few_ticks_and_guessed_sides_press_less() -> None:
    assert 0 < pressed(count=2).score < pressed(count=2000).score
    guessed = pressed(has_sides=False)
    assert guessed.score < pressed(has_sides=True).score
    assert "tick rule" in guessed.text


@pytest.mark.parametrize(
    ("age_ms", "span"),
    [(1_000, "minute"), (60_000, "2 minutes"), (3_540_000, "60 minutes"), (9_000_000, "60 minutes")],
)
def test_flow_says_how_long_it_was_heard(age_ms: int, span: str) -> None:
    text = f"Buyers dominated over the last {span} (delta +60)."
    assert pressed(since_ms=NOW_MS - age_ms).text == text


def test_flow_without_volume_presses_nowhere() -> None:
    flow = FlowFact((FlowWindow(60, 0.0, 0.0, 5),), 0.0, True, NOW_MS, NOW_MS)
    assert driver(analyse(make_facts(flow=flow)), "order_flow").score == 0


def test_two_signals_against_one_are_no_chorus() -> None:
    signals = (make_signal_fact(), make_signal_fact(), make_signal_fact(-1))
    found = driver(analyse(make_facts(signals=signals)), "signals")
    alone = driver(analyse(make_facts(signals=signals[:1])), "signals")
    assert found.score == 0.2
    assert found.text == "2 buy signals and 1 sell signal are active, with 2.95 R at risk."
    assert alone.text.startswith("1 buy signal is active, with ")


@pytest.mark.parametrize(
    ("score", "clear"), [(0.0, 1.0), (0.149, 0.007), (0.15, 0.3), (0.5, 1.0), (-1.0, 1.0)]
)
def test_clarity(score: float, clear: float) -> None:
    assert clarity(score) == pytest.approx(clear, abs=0.001)


@pytest.mark.parametrize(
    ("pulls", "agreed"), [([0.1, 0.2], 1), ([0.1, -0.1], 0), ([0.3, -0.1], 0.5), ([], 1)]
)
def test_agreement(pulls: list[float], agreed: float) -> None:
    assert agreement(pulls) == pytest.approx(agreed)


# News, order flow, averages, ranges, levels and what a model says, each by itself.
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
