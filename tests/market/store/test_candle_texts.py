"""The text that the database writes is the one that is made of the same row here."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.handing_on import may_be_handed_on
from instruments.models import Instrument
from market.models import Candle
from market.prices.candles import PriceBar
from market.prices.history import encode_row, row_of, row_of_csv
from market.store import candle_rows, candle_texts
from market.store.candle_texts import AS_CSV, AS_JSON, PART, StoredSeries
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
    ends_ms = [rows[-1].opened_ms]

    for form, expected in (
        (AS_JSON, b",".join(map(encode_row, rows)).decode()),
        (AS_CSV, "".join(map(row_of_csv, rows))),
    ):
        assert list(candle_texts.read_texts(series(instrument, digits), AFTER_MS, ends_ms, form)) == [
            (expected, len(rows))
        ]


def statements(instrument: Instrument, *bars: PriceBar) -> int:
    write(instrument, *bars)
    with count_queries() as asked:
        list(candle_texts.read_texts(series(instrument), AFTER_MS, [bars[-1].opened_ms], AS_JSON))
    return len(asked)


def test_database_writes_usual_rows_itself(instrument: Instrument) -> None:
    """Rows that are written here are right too, and would hide that the database writes none."""
    usual = bar(0, 1.08412, 0.1 + 0.2), bar(1, 65_432.1, 12_345.678), bar(2, 100.0, 1e9)

    assert statements(instrument, *usual) == 1


@pytest.mark.parametrize(("price", "volume"), [(1.084125, 1.0), (1.5, 12_345_678.25)])
def test_rows_that_it_may_round_differently_are_read_once_more(
    instrument: Instrument, price: float, volume: float
) -> None:
    assert statements(instrument, bar(0, price, volume)) == 2


@pytest.mark.parametrize("limit", [1, PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 7])
def test_parts_end_where_the_page_does(instrument: Instrument, limit: int) -> None:
    total = 2 * PART + 3
    write(instrument, *(bar(number, 1.5) for number in range(total)))

    bounds = candle_texts.find_bounds(series(instrument), AFTER_MS, 2 * NOON_MS, limit)

    held = min(limit, total)
    assert len(bounds.ends_ms) == math.ceil(held / PART)
    assert bounds.ends_ms[-1] == NOON_MS + (held - 1) * MINUTE_MS
    assert bounds.has_more is (limit < total)
    read = list(candle_texts.read_texts(series(instrument), AFTER_MS, bounds.ends_ms, AS_CSV))
    assert [count for _, count in read][:-1] == [PART] * (len(read) - 1)
    assert sum(count for _, count in read) == held


def test_minute_that_comes_into_a_page_while_it_is_sent_is_in_it_once(instrument: Instrument) -> None:
    write(instrument, *(bar(number, 1.5) for number in range(2 * PART) if number != 700))
    bounds = candle_texts.find_bounds(series(instrument), AFTER_MS, 2 * NOON_MS, 10_000)
    parts = candle_texts.read_texts(series(instrument), AFTER_MS, bounds.ends_ms, AS_CSV)

    first = next(parts)
    write(instrument, bar(700, 1.5))

    lines = "".join(text for text, _ in [first, *parts]).splitlines()
    assert len(lines) == len(set(lines)) == 2 * PART


def test_candles_that_are_gone_before_they_are_read_are_no_fault(instrument: Instrument) -> None:
    write(instrument, *(bar(number, 1.5) for number in range(PART + 1)))
    bounds = candle_texts.find_bounds(series(instrument), AFTER_MS, 2 * NOON_MS, 10_000)
    Candle.objects.all().delete()

    read = candle_texts.read_texts(series(instrument), AFTER_MS, bounds.ends_ms, AS_CSV)

    assert list(read) == [("", 0), ("", 0)]


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
    [
        ("kraken",),
        ("binance", "oanda"),
        ("push",),
        ("push:desk",),
        ("push:other",),
        ("demo",),
        ("%",),
        ("_",),
    ],
)
def test_what_may_not_be_handed_on_is_left_out(instrument: Instrument, withheld: tuple[str, ...]) -> None:
    write(instrument, *(bar(number, 1.5, source=source) for number, source in enumerate(SOURCES)))
    asked = series(instrument, 5, *withheld)

    bounds = candle_texts.find_bounds(asked, AFTER_MS, 2 * NOON_MS, 100)
    read = list(candle_texts.read_texts(asked, AFTER_MS, bounds.ends_ms, AS_CSV))

    may = [number for number, source in enumerate(SOURCES) if may_be_handed_on((source,), withheld)]
    assert [line[14:16] for text, _ in read for line in text.splitlines()] == [
        f"{number:02}" for number in may
    ]
