"""Pages of stored candles: which are in a page, and that they are encoded as those in memory are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.times import MINUTE_MS
from instruments.catalogue import catalogue, may_be_passed_on
from instruments.models import Instrument
from market.models import Candle
from market.prices.candles import PriceBar
from market.prices.history import encode_candles, encode_row, row_of
from market.store import candle_rows
from market.store.candle_rows import PART, CandlePart, StoredSeries, find_bounds, read_parts
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
def test_stored_candle_is_encoded_as_one_in_memory_is(digits: int, values: list[tuple[float, float]]) -> None:
    Candle.objects.all().delete()
    instrument = Instrument.objects.filter(symbol="EURUSD").first() or make_instrument("EURUSD")
    write(instrument, *(bar(number, *value) for number, value in enumerate(values)))
    rows = [row_of(each, digits) for each in stored(instrument)]
    last_ms = rows[-1].opened_ms

    (part,) = read_parts(series(instrument, digits), AFTER_MS, last_ms)
    assert encode_candles(part.candles) == b",".join(map(encode_row, rows))
    assert part.is_last


def read(asked: StoredSeries, limit: int = 10_000) -> list[CandlePart]:
    bounds = find_bounds(asked, AFTER_MS, 2 * NOON_MS, limit)
    assert bounds.last_ms is not None
    return list(read_parts(asked, AFTER_MS, bounds.last_ms))


def minutes_of(parts: Iterable[CandlePart]) -> list[str]:
    return [candle.time[14:16] for part in parts for candle in part.candles]


@pytest.mark.parametrize("limit", [1, PART - 1, PART, PART + 1, PART + 3, PART + 4])
def test_page_has_as_many_candles_as_there_are_up_to_its_limit(instrument: Instrument, limit: int) -> None:
    total = PART + 3
    assert find_bounds(series(instrument), AFTER_MS, 2 * NOON_MS, limit) == (None, False)
    write(instrument, *(bar(number, 1.5) for number in range(total)))

    bounds = find_bounds(series(instrument), AFTER_MS, 2 * NOON_MS, limit)
    parts = read(series(instrument), limit)

    held = min(limit, total)
    assert bounds.last_ms == NOON_MS + (held - 1) * MINUTE_MS
    assert bounds.has_more is (limit < total)
    assert [len(part.candles) for part in parts] == [PART, held - PART] if held > PART else [held]
    assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [True]


def begun(instrument: Instrument, missing: int | None = None) -> tuple[CandlePart, Iterator[CandlePart]]:
    """The first part of a page of two, and the rest that is still to be read."""
    write(instrument, *(bar(number, 1.5) for number in range(2 * PART) if number != missing))
    last_ms = NOON_MS + (2 * PART - 1) * MINUTE_MS
    parts = read_parts(series(instrument), AFTER_MS, last_ms)
    return next(parts), parts


def test_minute_that_comes_into_a_page_while_it_is_sent_is_in_it_once(instrument: Instrument) -> None:
    first, rest = begun(instrument, missing=2 * PART - 7)
    write(instrument, bar(2 * PART - 7, 1.5))
    times = [candle.time for part in [first, *rest] for candle in part.candles]
    assert len(times) == len(set(times)) == 2 * PART


def test_years_without_candles_cost_a_question(instrument: Instrument) -> None:
    write(instrument, bar(0, 1.5), bar(5_000_000, 1.5), bar(5_000_001, 1.5))
    with count_queries() as asked:
        parts = read(series(instrument))

    assert [len(part.candles) for part in parts] == [3]
    # The bounds, twice as there are fewer, and a part.
    assert len(asked) == 3


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
    found = minutes_of(read(series(instrument, 5, *withheld.split())))
    may = [n for n, source in enumerate(SOURCES) if may_be_passed_on((source,), withheld.split())]
    assert found == [f"{number:02}" for number in may]


def test_a_page_looks_at_so_many_withheld_candles(
    instrument: Instrument, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("market.store.candle_rows.MOST_LOOKED_AT", 10)
    sources = ["binance", *["kraken"] * 34, *["binance"] * 12]
    write(instrument, *(bar(number, 1.5, source=source) for number, source in enumerate(sources)))
    asked, after_ms, pages, has_more = series(instrument, 5, "kraken"), AFTER_MS, list[list[str]](), True

    while has_more:
        bounds = find_bounds(asked, after_ms, NOON_MS + 60 * MINUTE_MS, 5)
        assert bounds.last_ms is not None
        pages.append(minutes_of(read_parts(asked, after_ms, bounds.last_ms)))
        after_ms, has_more = bounds.last_ms, bounds.has_more

    open_ones = [f"{number:02}" for number in range(35, 47)]
    assert pages == [["00"], [], [], open_ones[:5], open_ones[5:10], open_ones[10:]]
