"""What each format of ticks says, read in blocks of whole lines."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from struct import pack
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from market.engine.files.format import (
    AGGTRADES,
    BI5,
    DUKASCOPY,
    HISTDATA,
    KLINES,
    M1,
    QUOTES,
    RECORDING,
    BadFile,
    Bar,
    FilePosition,
    Format,
    Subject,
    encode,
    usual_point,
)
from market.prices.records import Tick
from tests.market.ticking import ms


class Read(NamedTuple):
    ticks: list[Tick]
    lines: list[int]
    malformed: list[int]


def read(format: Format, content: str | bytes, path: str = "file") -> Read:
    whole = Read([], [], [])
    content = content.encode() if isinstance(content, str) else content
    blocks = blocks_of(content) if b"\n" in content else iter([content])
    for batch in format.read(blocks, Subject("EURUSD", 0.00001, path), FilePosition()):
        whole.ticks.extend(batch.ticks)
        whole.lines.extend(batch.lines)
        whole.malformed.extend(batch.malformed)
    return whole


def blocks_of(content: bytes) -> Iterator[bytes]:
    lines = content.splitlines(keepends=True)
    for start in range(0, len(lines), 3):
        yield b"".join(lines[start : start + 3])


def trade(maker: str = "True", number: object = 12345, time: int = 1672515782136) -> str:
    return f"{number},25.35190000,31.21000000,100,105,{time},{maker},True\n"


def test_trade_is_bid_and_ask_and_keeps_its_size_and_number() -> None:
    (tick,) = read(AGGTRADES, trade()).ticks
    at_ms = ms("2022-12-31T19:43:02.136")
    assert tick == Tick("EURUSD", 25.3519, 25.3519, at_ms, 31.21, -1, 25.3519, 12345)


@pytest.mark.parametrize(("maker", "side"), [("True", -1), ("true", -1), ("False", 1), ("false", 1)])
def test_taker_sold_where_the_buyer_is_the_maker(maker: str, side: int) -> None:
    assert read(AGGTRADES, trade(maker)).ticks[0].side == side


def test_microseconds_of_2025_are_known_by_their_magnitude_in_one_file_with_milliseconds() -> None:
    ticks = read(AGGTRADES, trade(time=1735689599999) + trade(time=1735689600000456)).ticks
    assert [tick.time_ms for tick in ticks] == [1735689599999, ms("2025-01-01T00:00:00.000")]


def test_header_of_the_futures_and_its_seven_columns_are_known() -> None:
    header = "agg_trade_id,price,quantity,first_trade_id,last_trade_id,transact_time,is_buyer_maker\n"
    found = read(AGGTRADES, header + "7,2.5,3.0,1,1,1735689600123,true\n")
    assert (found.lines, found.malformed, found.ticks[0].price) == ([2], [], 2.5)


@pytest.mark.parametrize("bad", [trade(number="x"), trade("maybe"), "1,2\n"])
def test_trade_that_makes_no_sense_is_named(bad: str) -> None:
    assert read(AGGTRADES, trade() + bad).malformed == [2]


PATH = "data/EURUSD/2024/00/15/13h_ticks.bi5"
RECORDS = pack(">IIIff", 93, 114277, 114273, 1.8, 2.7) + pack(">IIIff", 3_599_999, 114275, 114271, 0.9, 0.9)
PACKED = lzma.compress(RECORDS, format=lzma.FORMAT_ALONE)


def test_records_are_quotes_of_the_hour_in_the_path_with_january_as_month_0() -> None:
    first, last = read(BI5, PACKED, PATH).ticks
    assert (first.time_ms, first.ask, first.bid) == (ms("2024-01-15T13:00:00.093"), 1.14277, 1.14273)
    assert (last.time_ms, last.ask, last.bid) == (ms("2024-01-15T13:59:59.999"), 1.14275, 1.14271)
    december = read(BI5, PACKED, "2023/11/31/23h_ticks.bi5").ticks[0]
    assert december.time_ms == ms("2023-12-31T23:00:00.093")
    assert read(BI5, b"", PATH).ticks == []


@pytest.mark.parametrize(
    ("packed", "path", "complaint"),
    [
        (PACKED, "13h_ticks.bi5", "stands in its path"),
        (PACKED, "EURUSD/2024/12/15/13h_ticks.bi5", "stands in its path"),
        (PACKED, "2024/01/31/13h_ticks.bi5", "stands in its path"),
        (PACKED[:30], PATH, "damaged"),
        (b"junk", PATH, "damaged"),
        (lzma.compress(RECORDS[:-1], format=lzma.FORMAT_ALONE), PATH, "damaged"),
    ],
)
def test_path_that_says_no_hour_and_damaged_file_are_refused(
    packed: bytes, path: str, complaint: str
) -> None:
    with pytest.raises(BadFile, match=complaint):
        read(BI5, packed, path)


@pytest.mark.parametrize(
    ("path", "symbol", "digits", "point"),
    [
        ("BTCUSD/2024/00/15/13h_ticks.bi5", "XBTUSD", 2, 0.1),
        ("2024/00/15/13h_ticks.bi5", "ETHUSD", 2, 0.1),
        ("eurczk/2024/00/15/13h_ticks.bi5", "CZK", 5, 0.0001),
        ("USDJPY/2024/00/15/13h_ticks.bi5", "USDJPY.X", 5, 0.001),
        ("EURUSD/2024/00/15/13h_ticks.bi5", "EURUSD.X", 2, 0.00001),
        ("SPYUSUSD/2024/00/15/13h_ticks.bi5", "SPY", 2, 0.001),
        ("data/2024/00/15/13h_ticks.bi5", "NEWUSD", 4, 0.00001),
        ("13h_ticks.bi5", "BTCUSD", 2, 0.1),
    ],
)
def test_unit_is_that_of_the_folder_or_of_the_symbol_and_else_by_the_digits(
    path: str, symbol: str, digits: int, point: float
) -> None:
    assert usual_point(path, symbol, digits) == point


HOUR = {
    **{"timestamp": 1783944000000, "multiplier": 1.0e-5, "ask": 1.14277, "bid": 1.14273},
    **{"times": [93, 104, 0], "asks": [0, -2, 5], "bids": [0, -2, 4]},
    "askVolumes": [1800000.0, 900000.0, 900000.0],
    "bidVolumes": [2700000.0, 900000.0, 900000.0],
}


def test_each_tick_of_an_hour_is_what_changed_since_the_one_before() -> None:
    ticks = read(DUKASCOPY, json.dumps(HOUR)).ticks
    assert [(tick.time_ms - 1783944000000, tick.ask, tick.bid, tick.volume) for tick in ticks] == [
        (93, 1.14277, 1.14273, 0.0),
        (197, 1.14275, 1.14271, 0.0),
        (197, 1.1428, 1.14275, 0.0),
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
    with pytest.raises(BadFile, match="Download it again"):
        read(DUKASCOPY, json.dumps(HOUR)[:-10])


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        ("20120201 000003660", "2012-02-01T05:00:03.660"),
        ("20120701 120000000", "2012-07-01T17:00"),
        ("20121231 235959999", "2013-01-01T04:59:59.999"),
    ],
)
def test_line_of_histdata_is_a_quote_five_hours_later_in_utc_all_year(stamp: str, time: str) -> None:
    # Carriage returns and a missing last newline are nothing.
    ticks = read(HISTDATA, f"{stamp},1.306600,1.306770,0\r\n{stamp},1.306600,1.306770,0").ticks
    assert ticks == [Tick("EURUSD", 1.3066, 1.30677, ms(time))] * 2


@pytest.mark.parametrize(
    "line",
    [
        "20120201 000003660,1.3066",
        "20120201 000003660,1.3066,1.30677,0,0",
        "20120201 000003660,,1.30677,0",
        "20120201 000003660,1_3,1.30677,0",
        "20120230 000003660,1.3066,1.30677,0",
        "20120201 250003660,1.3066,1.30677,0",
        "20120201 000060000,1.3066,1.30677,0",
        "20120201 0000-3660,1.3066,1.30677,0",
        "20120201 00000366,1.3066,1.30677,0",
        "\ufffd\u0000",
    ],
)
def test_bad_line_is_named_and_those_around_it_are_read(line: str) -> None:
    good = "20120201 000003660,1.3066,1.30677,0"
    found = read(HISTDATA, f"{good}\n{line}\n\n{good}\n{good}\n")
    assert (found.malformed, found.lines, len(found.ticks)) == ([2], [1, 4, 5], 3)


@pytest.mark.parametrize(
    ("format", "line", "time", "volume"),
    [
        (M1, "20120201 000100;1.2;1.4;1.1;1.3;0", "2012-02-01T05:01", 0.0),
        (KLINES, "1672515780000,1.2,1.4,1.1,1.3,7.5,1672515839999,9,3,1,1,0", "2022-12-31T19:43", 7.5),
        (KLINES, "1735689600000000,1.2,1.4,1.1,1.3,7.5,1735689659999999,9,3,1,1,0", "2025-01-01T00:00", 7.5),
    ],
)
def test_line_of_bars_is_a_minute(format: Format, line: str, time: str, volume: float) -> None:
    # The futures' files have a header.
    found = read(format, f"open_time,open\n{line}" if format is KLINES else line)
    assert found.ticks == [Bar("EURUSD", 1.1, 1.4, ms(time), volume, open=1.2, close=1.3)]
    assert found.malformed == []


@pytest.mark.parametrize(
    ("format", "line"),
    [
        # A second that is none, extremes that are none, a column too many.
        (M1, "20120201 000130;1.2;1.4;1.1;1.3;0"),
        (M1, "20120201 000100;1.5;1.4;1.1;1.3;0"),
        (M1, "20120201 000100;1.2;1.4;1.1;1.0;0"),
        (M1, "20120201 000100;1.2;nan;1.1;1.3;0"),
        (M1, "20120201 000100;1.2;1.4;1.1;1.3;0;0"),
        # Bars of five minutes and of a second, one that begins within a minute, and a column too few.
        (KLINES, "1672515600000,1.2,1.4,1.1,1.3,7.5,1672515899999,9,3,1,1,0"),
        (KLINES, "1672515780000,1.2,1.4,1.1,1.3,7.5,1672515780999,9,3,1,1,0"),
        (KLINES, "1672515790000,1.2,1.4,1.1,1.3,7.5,1672515849999,9,3,1,1,0"),
        (KLINES, "1672515780000,1.2,1.4,1.1,1.3,7.5,1672515839999,9,3,1,1"),
    ],
)
def test_what_is_no_minute_is_named(format: Format, line: str) -> None:
    assert read(format, line).malformed == [1]


AT = ms("2026-11-18T12:00:00.250")


@pytest.mark.parametrize(
    "stamp",
    [
        str(AT),
        "2026-11-18T12:00:00.250Z",
        "2026-11-18 12:00:00.250",
        "2026-11-18T12:00:00.250999999Z",
        "2026-11-18T14:00:00.250+02:00",
        "2026-11-18T07:00:00.25-05:00",
    ],
)
def test_time_of_a_quote_is_milliseconds_or_iso_8601(stamp: str) -> None:
    assert read(QUOTES, f"timestamp,bid,ask\n{stamp},1.1,1.2\n").ticks[0].time_ms == AT


def test_sizes_offered_are_no_volume_and_the_mark_of_a_spreadsheet_is_nothing() -> None:
    header = "\ufeffTimestamp, Bid, Ask, Bid_Size, Ask_Size\n"
    found = read(QUOTES, f"{header}{AT},1.1,1.2,5000000,7\n")
    assert (found.ticks, found.lines) == ([Tick("EURUSD", 1.1, 1.2, AT)], [2])


@pytest.mark.parametrize(
    "line", ["1795003200,1.1,1.2", "yesterday,1.1,1.2", ",1.1,1.2", "2026-13-01,1.1,1.2", f"{AT},1.1,1.2,5"]
)
def test_seconds_other_words_and_a_single_size_are_malformed(line: str) -> None:
    found = read(QUOTES, f"timestamp,bid,ask\n{line}\n{AT},1.1,1.2\n")
    assert (found.malformed, found.lines) == ([2], [3])


prices = st.floats(0.0001, 1e9)
recorded = st.builds(
    Tick,
    symbol=st.just("EURUSD"),
    bid=prices,
    ask=prices,
    time_ms=st.integers(0, 2**53),
    volume=prices,
    side=st.sampled_from([-1, 0, 1]),
    price=st.none() | prices,
    source_seq=st.none() | st.integers(0, 2**53),
)
TICK = Tick("EURUSD", 1.1, 1.2, 1795003200000)


@given(st.lists(recorded, max_size=8))
def test_what_was_recorded_is_read(made: list[Tick]) -> None:
    assert read(RECORDING, encode(made)).ticks == made


def test_other_symbols_are_left_out_and_what_was_cut_short_or_has_no_price_is_named() -> None:
    whole = encode([TICK, Tick("GBPUSD", 1.3, 1.4, 1795003200000), TICK])
    no_price = b'{"symbol":"EURUSD","bid":null,"ask":1.2,"time_ms":1}\n'
    found = read(RECORDING, whole + b"\n" + no_price + encode([TICK])[:-9])
    assert found == ([TICK, TICK], [1, 3], [5, 6])
