from __future__ import annotations

import pytest

from market.engine.files.separated import AGGTRADES

from .reading import ms, read

LINE = "12345,25.35190000,31.21000000,100,105,1672515782136,{maker},True\n"


def test_trade_is_bid_and_ask_and_keeps_its_size_and_number() -> None:
    (tick,) = read(AGGTRADES, LINE.format(maker="False")).ticks

    assert (tick.bid, tick.ask, tick.price, tick.volume) == (25.3519, 25.3519, 25.3519, 31.21)
    assert (tick.source_seq, tick.time_ms) == (12345, ms("2022-12-31T19:43:02.136"))


@pytest.mark.parametrize(("maker", "side"), [("True", -1), ("true", -1), ("False", 1), ("false", 1)])
def test_taker_sold_where_the_buyer_is_the_maker(maker: str, side: int) -> None:
    assert read(AGGTRADES, LINE.format(maker=maker)).ticks[0].side == side


def test_microseconds_of_2025_are_known_by_their_magnitude() -> None:
    (tick,) = read(AGGTRADES, "1,2.0,3.0,1,1,1735689600123456,True,True\n").ticks

    assert tick.time_ms == ms("2025-01-01T00:00:00.123")


def test_both_units_may_stand_in_one_file() -> None:
    ticks = read(AGGTRADES, "1,2,3,1,1,1735689599999,True,True\n2,2,3,1,1,1735689600000000,True,True\n").ticks

    assert ticks[1].time_ms - ticks[0].time_ms == 1


def test_header_of_the_futures_and_its_seven_columns_are_known() -> None:
    header = "agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker\n"

    found = read(AGGTRADES, header + "7,2.5,3.0,1,1,1735689600123,true\n")

    assert (found.lines, found.malformed) == ([2], [])
    assert found.ticks[0].price == 2.5


@pytest.mark.parametrize(
    "bad", ["x,2,3,1,1,1735689599999,True,True", "1,2,3,1,1,1735689599999,maybe,True", "1,2"]
)
def test_bad_line_is_named(bad: str) -> None:
    assert read(AGGTRADES, LINE.format(maker="True") + bad + "\n").malformed == [2]
