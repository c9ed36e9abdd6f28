from __future__ import annotations

import lzma
from struct import pack

import pytest

from market.engine.files.dukascopy import BI5
from market.engine.files.format import BadFile

from .reading import ms, read

PATH = "data/EURUSD/2024/00/15/13h_ticks.bi5"
RECORDS = pack(">IIIff", 93, 114277, 114273, 1.8, 2.7) + pack(">IIIff", 3_599_999, 114275, 114271, 0.9, 0.9)
PACKED = lzma.compress(RECORDS, format=lzma.FORMAT_ALONE)


def test_records_are_quotes_of_the_hour_in_the_path_with_january_as_month_0() -> None:
    first, last = read(BI5, PACKED, PATH).ticks

    assert (first.time_ms, first.ask, first.bid) == (ms("2024-01-15T13:00:00.093"), 1.14277, 1.14273)
    assert (last.time_ms, last.ask, last.bid) == (ms("2024-01-15T13:59:59.999"), 1.14275, 1.14271)


def test_month_11_is_december() -> None:
    assert read(BI5, PACKED, "2023/11/31/23h_ticks.bi5").ticks[0].time_ms == ms("2023-12-31T23:00:00.093")


def test_empty_file_is_an_hour_without_ticks() -> None:
    assert read(BI5, b"", PATH).ticks == []


@pytest.mark.parametrize(
    "path", ["13h_ticks.bi5", "EURUSD/2024/12/15/13h_ticks.bi5", "2024/01/31/13h_ticks.bi5"]
)
def test_path_that_says_no_hour_is_refused(path: str) -> None:
    with pytest.raises(BadFile, match="stands in its path"):
        read(BI5, PACKED, path)


@pytest.mark.parametrize(
    "packed", [PACKED[:30], b"junk", lzma.compress(RECORDS[:-1], format=lzma.FORMAT_ALONE)]
)
def test_damaged_file_is_refused(packed: bytes) -> None:
    with pytest.raises(BadFile, match="damaged"):
        read(BI5, packed, PATH)
