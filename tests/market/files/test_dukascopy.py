from __future__ import annotations

import json

import pytest

from market.engine.files.dukascopy import DUKASCOPY
from market.engine.files.format import BadFile

from .reading import read

HOUR = {
    "timestamp": 1783944000000,
    "multiplier": 1.0e-5,
    "ask": 1.14277,
    "bid": 1.14273,
    "times": [93, 104, 0],
    "asks": [0, -2, 5],
    "bids": [0, -2, 4],
    "askVolumes": [1800000.0, 900000.0, 900000.0],
    "bidVolumes": [2700000.0, 900000.0, 900000.0],
}


def test_documented_hour_begins_with_the_documented_tick() -> None:
    tick = read(DUKASCOPY, json.dumps(HOUR)).ticks[0]

    assert (tick.time_ms, tick.ask, tick.bid, tick.volume) == (1783944000093, 1.14277, 1.14273, 0.0)


def test_each_tick_is_what_changed_since_the_one_before() -> None:
    ticks = read(DUKASCOPY, json.dumps(HOUR)).ticks

    assert [(tick.time_ms % 1000, tick.ask, tick.bid) for tick in ticks] == [
        (93, 1.14277, 1.14273),
        (197, 1.14275, 1.14271),
        (197, 1.1428, 1.14275),
    ]


def test_hour_without_ticks_is_read() -> None:
    empty = {"timestamp": 1783944000000, "multiplier": 1e-5, "times": [], "asks": [], "bids": []}

    assert read(DUKASCOPY, json.dumps(empty)).ticks == []


@pytest.mark.parametrize(
    "change", [{"times": [93]}, {"asks": ["x", 1, 2]}, {"multiplier": 0.0}, {"times": None}]
)
def test_hour_that_does_not_fit_together_is_refused_whole(change: dict[str, object]) -> None:
    with pytest.raises(BadFile, match="no whole hour"):
        read(DUKASCOPY, json.dumps(HOUR | change))


def test_hour_that_was_cut_short_is_refused() -> None:
    with pytest.raises(BadFile, match="Download it again"):
        read(DUKASCOPY, json.dumps(HOUR)[:-10])
