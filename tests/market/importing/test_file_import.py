"""One file into stored candles: which, of what, and what is left out."""

from __future__ import annotations

import gzip
import lzma
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from struct import pack
from typing import Any

import msgspec
import pytest

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.times import MINUTE_MS, moment
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market.engine.files.format import BadFile
from market.engine.importing.importer import Importer, ImportTerms
from market.engine.importing.tally import StoppedAtFault
from market.models import Candle
from market.prices.records import Tick
from tests.factories import make_calendar, make_candle, make_instrument
from tests.market.ticking import NOON_MS, minutes_of, ms

from .importing import (
    assert_coarser_are_aggregates,
    import_files,
    never_stop,
    opened,
    rows,
    stored,
    walk,
    write,
)

pytestmark = [pytest.mark.django_db, pytest.mark.services]


@pytest.fixture(autouse=True)
def instrument() -> Instrument:
    return make_instrument("EURUSD", volume_kind="trades")


@pytest.fixture
def forex(instrument: Instrument) -> None:
    calendar = make_calendar("forex", "Sun 17:00-Fri 17:00", timezone="America/New_York")
    Instrument.objects.update(calendar=calendar)
    catalogue.load_now()


def imported_events() -> list[dict[str, str]]:
    return list(ControlEvent.objects.filter(kind=EventKind.CANDLES_IMPORTED).values_list("facts", flat=True))


def test_minutes_and_all_that_is_coarser_are_stored_and_twice_changes_nothing(tmp_path: Path) -> None:
    ticks = walk("2026-11-16T22:50", 130)
    path = write(tmp_path / "a.jsonl", ticks)
    import_files(path)
    assert stored("1m") == list(minutes_of(ticks))
    assert_coarser_are_aggregates(NOON_MS)
    before = rows()
    import_files(path)
    import_files(path, path)
    assert rows() == before


@pytest.mark.parametrize("is_older", [False, True])
def test_file_that_goes_on_within_an_hour_completes_it(tmp_path: Path, is_older: bool) -> None:
    ticks = walk("2026-11-16T10:00", 90)
    halves = [write(tmp_path / "a.jsonl", ticks[: 40 * 3]), write(tmp_path / "b.jsonl", ticks[40 * 3 :])]
    for path in reversed(halves) if is_older else halves:
        import_files(path)
    assert stored("1m") == list(minutes_of(ticks))
    assert_coarser_are_aggregates(NOON_MS)


def test_minute_cut_in_two_is_whole_and_a_tick_of_both_files_counts_once(tmp_path: Path) -> None:
    Instrument.objects.update(volume_kind="ticks")
    catalogue.load_now()
    ticks = walk("2026-11-16T10:00", 5)
    tally = import_files(write(tmp_path / "a.jsonl", ticks[:8]), write(tmp_path / "b.jsonl", ticks[7:]))
    assert stored("1m") == list(minutes_of([msgspec.structs.replace(tick, volume=1.0) for tick in ticks]))
    assert tally.minutes == 5


def test_quiet_minutes_between_two_files_are_flat(tmp_path: Path) -> None:
    ticks = [*walk("2026-11-16T10:58", 1), *walk("2026-11-16T11:03", 1)]
    import_files(write(tmp_path / "a.jsonl", ticks[:3]), write(tmp_path / "b.jsonl", ticks[3:]))
    assert opened("1m") == ["16 10:58", "16 10:59", "16 11:00", "16 11:01", "16 11:02", "16 11:03"]


def test_what_is_still_running_is_not_stored_and_the_future_is_refused(tmp_path: Path) -> None:
    import_files(write(tmp_path / "a.jsonl", walk("2026-11-18T10:59", 61)), now_ms=NOON_MS - MINUTE_MS // 2)
    assert (opened("1m")[-1], opened("1h")) == ("18 11:58", ["18 10:00"])
    tally = import_files(write(tmp_path / "b.jsonl", walk("2026-11-18T11:59", 2)))
    assert tally.faults == {"future": 2}
    assert opened("1m")[-1] == "18 11:59"


@pytest.mark.usefixtures("forex")
def test_ticks_of_a_weekend_are_left_out_and_the_day_that_it_ended_is_closed(tmp_path: Path) -> None:
    friday = walk("2026-11-13T21:58", 2)
    import_files(write(tmp_path / "friday.jsonl", friday), now_ms=ms("2026-11-13T22:30"))
    assert opened("4h") == ["13 20:00"]
    ticks = [*friday, *walk("2026-11-14T12:00", 2), *walk("2026-11-15T22:00", 1)]
    tally = import_files(write(tmp_path / "a.jsonl", ticks))
    assert tally.faults == {"market_closed": 6}
    assert opened("1m") == ["13 21:58", "13 21:59", "15 22:00"]


@pytest.mark.parametrize("price", ["bid", "mid"])
def test_candles_say_what_they_were_made_of(tmp_path: Path, price: str) -> None:
    import_files(write(tmp_path / "a.jsonl", walk("2026-11-16T10:00", 1)), price=price)
    assert set(Candle.objects.values_list("basis", flat=True)) == {price}
    # Those of trades have their sizes as volume.
    path = tmp_path / "EURUSD-aggTrades.csv"
    path.write_text(f"1,1.08,2.5,1,1,{ms('2026-11-17T10:00')},True,True\n")
    import_files(str(path))
    row = Candle.objects.get(timeframe="1m", basis="trades")
    assert row.volume == Decimal("2.5")


def test_each_bad_line_is_named_with_its_reason(tmp_path: Path) -> None:
    at_ms = ms("2026-11-16T10:00")
    path = tmp_path / "EURUSD.csv"
    stamps = [at_ms, at_ms - 1, at_ms, at_ms + 1]
    path.write_text(
        "timestamp,bid,ask\noops\n"
        + "".join(f"{stamp},1.08,1.0802\n" for stamp in stamps)
        + f"{at_ms + 2},1.09,1.08\n{at_ms + 3},1.09\n"
    )

    tally = import_files(str(path))
    assert sorted((fault.line, fault.reason) for fault in tally.named) == [
        (2, "malformed"),
        (4, "older_than_last"),
        (5, "duplicate"),
        (7, "crossed"),
        (8, "malformed"),
    ]
    assert tally.ticks == 2


def test_strict_import_stops_at_the_first_bad_line_and_keeps_what_was_before(tmp_path: Path) -> None:
    ticks = walk("2026-11-16T10:00", 600)
    ticks.insert(1500, Tick("EURUSD", 1.09, 1.08, ticks[1500].time_ms))
    path = write(tmp_path / "a.jsonl", ticks, line_bytes=500)
    with pytest.raises(StoppedAtFault) as stopped:
        import_files(path, strict=True)
    assert (stopped.value.fault.line, stopped.value.fault.reason) == (1501, "crossed")
    # Three ticks a minute: the bad one ends the last, which is not known to be whole.
    assert len(stored("1m")) == 499


def test_file_that_breaks_off_leaves_what_came_before(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", walk("2026-11-16T10:00", 600), line_bytes=500)
    packed = tmp_path / "a.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes())[:-100])
    with pytest.raises(BadFile, match="cannot be read"):
        import_files(str(packed))
    assert len(stored("1m")) > 400


def test_all_processes_hear_once_of_an_import_that_made_something(tmp_path: Path) -> None:
    import_files(write(tmp_path / "future.jsonl", walk("2026-11-19T10:00", 5)))
    assert imported_events() == []
    first, second = walk("2026-11-16T10:00", 5), walk("2026-11-16T10:05", 5)
    import_files(write(tmp_path / "a.jsonl", first), write(tmp_path / "b.jsonl", second))
    assert imported_events() == [{"symbol": "EURUSD"}]


def bars(*times: str) -> str:
    """A file of Binance's minutes."""
    lines = (f"{ms(at)},1.2,1.4,1.1,1.3,7.5,{ms(at) + 59_999},9,3,1,1,0\n" for at in times)
    return "".join(lines)


@pytest.mark.parametrize(("volume_kind", "volume"), [("traded", "7.5"), ("ticks", "0")])
def test_bars_are_the_minutes_that_they_say_and_those_between_are_flat(
    tmp_path: Path, volume_kind: str, volume: str
) -> None:
    Instrument.objects.update(volume_kind=volume_kind)
    catalogue.load_now()
    path = tmp_path / "bars.csv"
    path.write_text(bars("2026-11-16T10:00", "2026-11-16T10:02"))
    rest = tmp_path / "rest.csv"
    rest.write_text(bars("2026-11-16T10:02", "2026-11-16T10:03"))

    assert import_files(str(path), str(rest)).minutes == 4
    said = [Decimal(each) for each in ("1.2", "1.4", "1.1", "1.3", "1.4", volume)]
    flat = [Decimal("1.3")] * 5 + [Decimal(0)]
    found = Candle.objects.filter(timeframe="1m").order_by("opened_at")
    columns = ("open", "high", "low", "close", "ask_high", "volume")
    assert [list(row) for row in found.values_list(*columns)] == [said, flat, said, said]
    assert set(Candle.objects.values_list("basis", "source")) == {("import", "import")}
    assert_coarser_are_aggregates(NOON_MS)


def bi5(folder: Path, price: int) -> str:
    path = folder / "BTCUSD/2024/00/15/13h_ticks.bi5"
    path.parent.mkdir(parents=True)
    path.write_bytes(lzma.compress(pack(">IIIff", 93, price + 1, price, 1, 1), format=lzma.FORMAT_ALONE))
    return str(path)


def store(instrument: Instrument, timeframe: str, at: str, close: int) -> None:
    prices: dict[str, Any] = dict.fromkeys(("open", "high", "low", "close"), Decimal(close))
    make_candle(instrument, timeframe, moment(ms(at)), **prices)


@pytest.mark.parametrize(
    ("stored_at", "close", "point", "is_refused"),
    [
        # The file says 43,000.0, in Dukascopy's own unit.
        ("2024-01-15T12:00", 4_299, None, True),
        ("2024-01-15T12:00", 4_301, None, False),
        ("2024-01-15T12:00", 429_999, None, False),
        ("2024-01-15T15:00", 430_001, None, True),
        ("2024-02-14T13:00", 430, None, True),
        ("2024-02-14T14:00", 430, None, False),
        ("2023-12-16T14:00", 430, None, True),
        ("2023-12-16T13:00", 430, None, False),
        ("2024-01-15T12:00", 430, 0.1, False),
    ],
)
def test_bi5_whose_prices_are_more_than_tenfold_those_stored_nearby_is_refused(
    tmp_path: Path, stored_at: str, close: int, point: float | None, is_refused: bool
) -> None:
    instrument = make_instrument("BTCUSD", digits=2)
    catalogue.load_now()
    store(instrument, "1m", stored_at, close)
    terms = ImportTerms(catalogue.get_any("BTCUSD"), "bid", NOON_MS, point)
    importer = Importer(terms)

    # Both figures, and the way out.
    words = rf"43000\.00 in units of 0\.1, .* {close}\.00\. .*--point"
    with pytest.raises(BadFile, match=words) if is_refused else nullcontext():
        importer.run([bi5(tmp_path, 430_000)], None, never_stop)
    assert Candle.objects.filter(close=43_000).exists() is not is_refused


def test_the_nearest_candle_counts_whether_a_minute_or_an_hour(tmp_path: Path) -> None:
    instrument = make_instrument("BTCUSD", digits=2)
    for timeframe, at, close in (
        *(
            ("1h", "2024-01-15T11:00", 430),
            ("1m", "2024-01-15T12:00", 430),
            ("1m", "2024-01-15T12:59", 43_000),
        ),
        *(("1h", "2024-01-15T14:00", 430), ("1m", "2024-01-15T15:59", 430), ("1h", "2024-01-15T18:00", 430)),
    ):
        store(instrument, timeframe, at, close)
    catalogue.load_now()
    terms = ImportTerms(catalogue.get_any("BTCUSD"), "bid", NOON_MS)
    path = bi5(tmp_path, 430_000)

    Importer(terms).run([path], None, never_stop)
    Candle.objects.filter(close=43_000).delete()
    with pytest.raises(BadFile, match="2024-01-15 14:00"):
        Importer(terms).run([path], None, never_stop)
