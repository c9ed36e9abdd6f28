"""Turns, bands, and on which side of the price they are."""

from __future__ import annotations

import pytest

from analysis.facts import AnalysedBar, QuoteFact
from analysis.levels import levels_of, turns

from .made_facts import NOW_MS, make_bars, make_facts, mirrored

ZIGZAG = [1.10, 1.11, 1.12, 1.13, 1.12, 1.11, 1.10, 1.09, 1.08, 1.09, 1.10, 1.11] * 6


def zigzag() -> tuple[AnalysedBar, ...]:
    return make_bars("1h", ZIGZAG, width=0.0001)


def test_turns_are_levels_on_the_side_where_they_are_now() -> None:
    levels = levels_of(make_facts(bars={"1h": zigzag()}, quote=QuoteFact(1.0999, 1.1001, NOW_MS)))

    assert [(each.price, each.touches) for each in levels.supports] == [(1.07989, 6)]
    assert [(each.price, each.touches) for each in levels.resistances] == [(1.13011, 6)]


def test_broken_resistance_is_a_support() -> None:
    levels = levels_of(make_facts(bars={"1h": zigzag()}, quote=QuoteFact(1.1399, 1.1401, NOW_MS)))

    assert [each.price for each in levels.supports] == [1.13011, 1.07989]
    assert levels.resistances == []


def test_levels_of_the_mirror_image_are_mirrored() -> None:
    one = make_facts(bars={"1h": zigzag()}, quote=QuoteFact(1.0999, 1.1001, NOW_MS))
    levels, mirror = levels_of(one), levels_of(mirrored(one))

    assert mirror.resistances[0].price == pytest.approx(1 / levels.supports[0].price, abs=1e-5)
    assert mirror.resistances[0].touches == levels.supports[0].touches
    assert mirror.atr_bands is not None
    assert levels.atr_bands is not None
    assert mirror.atr_bands.upper_1 == pytest.approx(1 / levels.atr_bands.lower_1, abs=1e-5)


def test_last_bars_are_no_turn_before_others_have_shown_it() -> None:
    bars = zigzag()[:12]

    assert len(list(turns(bars))) == 2
    assert len(list(turns(bars[:11]))) == 1


def test_bands_lie_around_the_price() -> None:
    bands = levels_of(make_facts(bars={"1h": zigzag()}, quote=QuoteFact(1.0999, 1.1001, NOW_MS))).atr_bands

    assert bands is not None
    assert bands.lower_2 < bands.lower_1 < 1.1 < bands.upper_1 < bands.upper_2
