"""Candles as tables of pandas, polars and Arrow, which are imported only where one is asked for."""

from __future__ import annotations

from array import array
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import httpx

from .errors import BrokenAnswer, MissingExtra
from .pages import JSON, Form, Route, next_cursor, read_page, time_ms
from .types import Candle

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

ARROW = "application/vnd.apache.arrow.stream"
NUMBERS = ("open", "high", "low", "close", "volume")
EXTRAS = {"pandas": "pandas", "polars": "polars", "pyarrow": "arrow"}
# With which a stream of Arrow ends.
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


class Bars:
    """Columns, gathered page by page: 48 bytes a candle, however it was sent."""

    def __init__(self) -> None:
        self.time_ms = array("q")
        self.numbers = {name: array("d") for name in NUMBERS}

    def add(self, page: Bars) -> None:
        self.time_ms.extend(page.time_ms)
        for name, column in self.numbers.items():
            column.extend(page.numbers[name])

    def add_candles(self, candles: list[Candle]) -> None:
        self.time_ms.extend(time_ms(candle["time"]) for candle in candles)
        for name, column in self.numbers.items():
            column.extend(candle[name] for candle in candles)  # type: ignore[literal-required]


def require(call: str, package: str) -> None:
    """Before anything is asked for."""
    try:
        import_module(package)
    except ModuleNotFoundError:
        raise MissingExtra(call, package, EXTRAS[package]) from None


def table_form() -> Form[Bars]:
    """Arrow where this program can read it and the service write it, else JSON."""
    has_arrow = find_spec("pyarrow") is not None
    return Form(f"{ARROW}, {JSON.accept};q=0.5" if has_arrow else JSON.accept, _read_bars)


def pandas_frame(bars: Bars) -> pandas.DataFrame:
    import numpy
    import pandas

    at = numpy.frombuffer(bars.time_ms, "int64").view("datetime64[ms]").astype("datetime64[ns]")
    # In nanoseconds, as other indices are: pandas 2 joins no two of different units.
    index = pandas.DatetimeIndex(at, name="time").tz_localize("UTC")
    return pandas.DataFrame({name: numpy.frombuffer(c) for name, c in bars.numbers.items()}, index, copy=True)


def polars_frame(bars: Bars) -> polars.DataFrame:
    import polars

    time = polars.Series("time", bars.time_ms, polars.Int64).cast(polars.Datetime("ms", "UTC"))
    return polars.DataFrame(
        [time, *(polars.Series(name, c, polars.Float64) for name, c in bars.numbers.items())]
    )


def arrow_table(bars: Bars) -> pyarrow.Table:
    import pyarrow

    def made(column: Any, kind: Any) -> Any:
        return pyarrow.Array.from_buffers(kind, len(column), [None, pyarrow.py_buffer(column)])

    time = made(bars.time_ms, pyarrow.timestamp("ms", "UTC"))
    numbers = {name: made(column, pyarrow.float64()) for name, column in bars.numbers.items()}
    return pyarrow.table({"time": time, **numbers})


def _read_bars(answer: httpx.Response, route: Route) -> tuple[Bars, str | None]:
    bars = Bars()
    if answer.headers.get("Content-Type", "").startswith(ARROW):
        _add_arrow(bars, answer.content)
        return bars, next_cursor(answer)
    page, following = read_page(answer, route)
    bars.add_candles(page.items)
    return bars, following


def _add_arrow(bars: Bars, content: bytes) -> None:
    import pyarrow

    if not content.endswith(END_OF_STREAM):
        raise BrokenAnswer("The answer broke off within its table.")
    try:
        table = pyarrow.ipc.open_stream(content).read_all()
    except pyarrow.ArrowInvalid as failure:
        raise BrokenAnswer(f"The answer was no whole table: {failure}") from None
    times = table["time"].cast(pyarrow.timestamp("ms", "UTC")).cast(pyarrow.int64())
    bars.time_ms.frombytes(_bytes_of(times))
    for name, column in bars.numbers.items():
        column.frombytes(_bytes_of(table[name]))


def _bytes_of(column: Any) -> memoryview:
    return memoryview(column.to_numpy()).cast("B")
