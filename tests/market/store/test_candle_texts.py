"""The text that the database writes is the one that is made of the same row here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.times import MINUTE_MS
from instruments.catalogue import catalogue, may_be_handed_on
from instruments.models import Instrument
from market.models import Candle
from market.prices.candles import PriceBar
from market.prices.history import encode_row, row_of, row_of_csv
from market.store import candle_rows, candle_texts
from market.store.candle_texts import (
    AS_CSV,
    AS_JSON,
    PART,
    CandlesText,
    StoredSeries,
    find_bounds,
    read_parts,
)
from tests.databases.queries import count_queries
from tests.factories import make_instrument
from tests.market.ticking import NOON_MS

pytestmark = pytest.mark.django_db

AFTER_MS = NOON_MS - 1
PRICES = st.floats(1e-8, 9_999_999, exclude_min=True) | st.decimals("0.00000001", "9999999", places=8).map(
    float
)
VOLUMES = (
    st.floats(0, 1e15) | st.decimals(0, 10_000_000, places=8).map(float) | st.integers(0, 10**15).map(float)
)


@pytest.fixture
def instrument() -> Instrument:
    return make_instrument("EURUSD")


def series(instrument: Instrument, digits: int = 5, *withheld: str) -> StoredSeries:
    return StoredSeries(instrument.pk, digits, "1m", simulated=False, withheld=withheld)


def bar(number: int, price: float, volume: float = 1.0, source: str = "") -> PriceBar:
    at_ms = NOON_MS + number * MINUTE_MS
    return PriceBar(at_ms, price, price, price, price, volume, price, price, source)


def write(instrument: Instrument, *bars: PriceBar) -> None:
    candle_rows.write_candles((instrument.pk, "1m", each, "bid") for each in bars)


def stored(instrument: Instrument) -> list[PriceBar]:
    return candle_rows.read_minutes_since(catalogue.get(instrument.symbol), 0)


@given(
    digits=st.integers(0, 8),
    values=st.lists(st.tuples(PRICES, VOLUMES), min_size=1, max_size=20),
)
@example(digits=5, values=[(1.084125, 1.0), (1.084135, 0.1 + 0.2)])
@example(digits=2, values=[(0.615, 1.0), (2.675, 12_345_678.12345678)])
@example(digits=8, values=[(0.00000003, 0.00000001), (8_388_608.000000001, 5e-9)])
@example(digits=0, values=[(100.0, 20.0), (2.5, 3.0), (0.5, 1e15)])
def test_text_is_the_row_encoded_here(digits: int, values: list[tuple[float, float]]) -> None:
    Candle.objects.all().delete()
    instrument = Instrument.objects.filter(symbol="EURUSD").first() or make_instrument("EURUSD")
    write(instrument, *(bar(number, *value) for number, value in enumerate(values)))
    rows = [row_of(each, digits) for each in stored(instrument)]
    last_ms = rows[-1].opened_ms

    for form, expected in (
        (AS_JSON, b",".join(map(encode_row, rows)).decode()),
        (AS_CSV, "".join(map(row_of_csv, rows))),
    ):
        parts = candle_texts.read_parts(series(instrument, digits), AFTER_MS, last_ms, form)
        assert list(parts) == [(expected, len(rows), True)]


USUAL = [(1.08412, 0.1 + 0.2), (65.432, 12_345.678), (1.0, 1e9)]
SIZES = (0.00012, 9.87654, 99.99999, 100.0, 12_345.67891, 1_234_567.25, 99_999_999.5)
USUAL += [(price, volume) for price in SIZES for volume in (0.0, 5.0, 1e8, 12_345.678)]


@pytest.mark.parametrize(
    ("pairs", "statements"), [(USUAL, 1), ([(1.084125, 1.0)], 2), ([(1.5, 12_345_678.25)], 2)]
)
def test_database_writes_all_but_the_rows_that_it_may_round_differently(
    instrument: Instrument, pairs: list[tuple[float, float]], statements: int
) -> None:
    """Rows that are written here are right too, and would hide that the database writes none."""
    bars = [bar(number, *pair) for number, pair in enumerate(pairs)]
    write(instrument, *bars)
    with count_queries() as asked:
        list(candle_texts.read_parts(series(instrument), AFTER_MS, bars[-1].opened_ms, AS_JSON))
    assert len(asked) == statements


def read(asked: StoredSeries, limit: int = 10_000) -> list[CandlesText]:
    bounds = candle_texts.find_bounds(asked, AFTER_MS, 2 * NOON_MS, limit)
    assert bounds.last_ms is not None
    return list(candle_texts.read_parts(asked, AFTER_MS, bounds.last_ms, AS_CSV))


@pytest.mark.parametrize("limit", [1, PART - 1, PART, PART + 1, PART + 3, PART + 4])
def test_page_has_as_many_candles_as_there_are_up_to_its_limit(instrument: Instrument, limit: int) -> None:
    total = PART + 3
    assert find_bounds(series(instrument), AFTER_MS, 2 * NOON_MS, limit) == (None, False)
    write(instrument, *(bar(number, 1.5) for number in range(total)))

    bounds = candle_texts.find_bounds(series(instrument), AFTER_MS, 2 * NOON_MS, limit)
    parts = read(series(instrument), limit)

    held = min(limit, total)
    assert bounds.last_ms == NOON_MS + (held - 1) * MINUTE_MS
    assert bounds.has_more is (limit < total)
    assert [part.candles for part in parts] == [PART, held - PART] if held > PART else [held]
    assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [True]


def begun(instrument: Instrument, missing: int | None = None) -> tuple[CandlesText, Iterator[CandlesText]]:
    """The first part of a page of two, and the rest that is still to be read."""
    write(instrument, *(bar(number, 1.5) for number in range(2 * PART) if number != missing))
    last_ms = NOON_MS + (2 * PART - 1) * MINUTE_MS
    parts = candle_texts.read_parts(series(instrument), AFTER_MS, last_ms, AS_CSV)
    return next(parts), parts


def test_minute_that_comes_into_a_page_while_it_is_sent_is_in_it_once(instrument: Instrument) -> None:
    first, rest = begun(instrument, missing=2 * PART - 7)
    write(instrument, bar(2 * PART - 7, 1.5))
    lines = "".join(part.text for part in [first, *rest]).splitlines()
    assert len(lines) == len(set(lines)) == 2 * PART


def test_years_without_candles_cost_a_question(instrument: Instrument) -> None:
    write(instrument, bar(0, 1.5), bar(5_000_000, 1.5), bar(5_000_001, 1.5))
    with count_queries() as asked:
        parts = read(series(instrument))

    assert [part.candles for part in parts] == [1, 2]
    # The bounds, twice as there are fewer; two parts; between them nothing, and where it goes on.
    assert len(asked) == 6


def test_candles_that_are_gone_before_they_are_read_are_no_fault(instrument: Instrument) -> None:
    _, rest = begun(instrument)
    Candle.objects.all().delete()
    assert list(rest) == []


SOURCES = (
    "",
    "kraken",
    "krakenx",
    "kraken+binance",
    "binance+kraken",
    "push",
    "push:desk",
    "push:des",
    "import",
)


@pytest.mark.parametrize(
    "withheld",
    ["kraken", "binance oanda", "push", "push:desk", "push:other", "demo", "%", "_"],
)
def test_what_may_not_be_handed_on_is_left_out(instrument: Instrument, withheld: str) -> None:
    write(instrument, *(bar(number, 1.5, source=source) for number, source in enumerate(SOURCES)))
    lines = "".join(part.text for part in read(series(instrument, 5, *withheld.split()))).splitlines()
    may = [n for n, source in enumerate(SOURCES) if may_be_handed_on((source,), withheld.split())]
    assert [line[14:16] for line in lines] == [f"{number:02}" for number in may]


def test_a_page_looks_at_so_many_withheld_candles(
    instrument: Instrument, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("market.store.candle_texts.MOST_LOOKED_AT", 10)
    sources = ["binance", *["kraken"] * 34, *["binance"] * 12]
    write(instrument, *(bar(number, 1.5, source=source) for number, source in enumerate(sources)))
    asked, after_ms, pages, has_more = series(instrument, 5, "kraken"), AFTER_MS, list[list[str]](), True

    while has_more:
        bounds = find_bounds(asked, after_ms, NOON_MS + 60 * MINUTE_MS, 5)
        assert bounds.last_ms is not None
        text = "".join(part.text for part in read_parts(asked, after_ms, bounds.last_ms, AS_CSV))
        pages.append([line[14:16] for line in text.splitlines()])
        after_ms, has_more = bounds.last_ms, bounds.has_more

    open_ones = [f"{number:02}" for number in range(35, 47)]
    assert pages == [["00"], [], [], open_ones[:5], open_ones[5:10], open_ones[10:]]
