from __future__ import annotations

from datetime import date

import pytest

from archive.layout import BadPath, candles_path, manifest_path, parse, ticks_path

DAY = date(2026, 11, 18)


@pytest.mark.parametrize("symbol", ["EURUSD", "BTC-USD", "BRK.B", "US_500", "0700", "A..B"])
def test_paths_are_those_that_are_documented_and_say_what_they_were_made_of(symbol: str) -> None:
    assert ticks_path(symbol, DAY) == f"ticks/{symbol}/2026-11-18.parquet"
    assert candles_path(symbol, DAY) == f"candles/1m/{symbol}/2026-11-18.parquet"
    assert manifest_path(DAY) == "manifests/2026-11-18.json"
    assert parse(ticks_path(symbol, DAY)) == ("ticks", symbol, DAY)
    assert parse(candles_path(symbol, DAY)) == ("candles", symbol, DAY)


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "ticks", "ticks/EURUSD", "ticks//2026-11-18.parquet", "/ticks/EURUSD/2026-11-18.parquet"),
        *("ticks/../2026-11-18.parquet", "ticks/./2026-11-18.parquet", "ticks/.A/2026-11-18.parquet"),
        *("ticks/EURUSD/2026-02-30.parquet", "ticks/EURUSD/2026-11-18.parquet\n", "manifests/2026-11-18"),
        *(
            "candles/5m/EURUSD/2026-11-18.parquet",
            "ticks/eurusd/2026-11-18.parquet",
            "ticks/Ä/2026-11-18.parquet",
        ),
        *(
            "ticks/EURUSD/٢٠٢٦-11-18.parquet",
            "ticks/A/B/2026-11-18.parquet",
            "ticks/A\x00/2026-11-18.parquet",
        ),
    ],
)
def test_anything_else_is_no_path(path: str) -> None:
    with pytest.raises(BadPath):
        parse(path)


@pytest.mark.parametrize("symbol", ["", "..", "../A", "A/B", "a", ".A", "A\n"])
def test_a_symbol_that_could_leave_the_folder_makes_no_path(symbol: str) -> None:
    with pytest.raises(BadPath):
        ticks_path(symbol, DAY)
