"""Walks over everything that the service stores of something, page by page."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from .pages import CSV, JSON, Form, Page, Place, Route
from .tables import Bars, arrow_table, pandas_frame, polars_frame, require, table_form
from .types import Candle

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

T = TypeVar("T")
C = TypeVar("C")


class Asks(Protocol):
    def place(self, route: Route, form: Form[C]) -> Place[C]: ...

    def page(self, place: Place[C]) -> C: ...


class AsksLater(Protocol):
    def place(self, route: Route, form: Form[C]) -> Place[C]: ...

    async def page(self, place: Place[C]) -> C: ...


class Walk(Generic[T]):
    """Each iteration starts again; pages are not kept after they have been read."""

    def __init__(self, client: Asks, route: Route) -> None:
        self._client, self._route = client, route

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page

    def pages(self) -> Generator[Page[T], None, None]:
        return self._walk(JSON)

    def _walk(self, form: Form[C]) -> Generator[C, None, None]:
        place = self._client.place(self._route, form)
        while not place.is_at_end:
            yield self._client.page(place)


class History(Walk[Candle]):
    """Closed candles, oldest first."""

    def csv_pages(self) -> Generator[str, None, None]:
        """Pages as CSV, as the service writes them: each begins with the line of column names."""
        return self._walk(CSV)

    def to_pandas(self) -> pandas.DataFrame:
        """Indexed by `time`, in UTC."""
        require("to_pandas()", "pandas")
        return pandas_frame(self._bars())

    def to_polars(self) -> polars.DataFrame:
        require("to_polars()", "polars")
        return polars_frame(self._bars())

    def to_arrow(self) -> pyarrow.Table:
        require("to_arrow()", "pyarrow")
        return arrow_table(self._bars())

    def _bars(self) -> Bars:
        bars = Bars()
        for content in self._walk(table_form()):
            bars.add(content)
        return bars


class AsyncWalk(Generic[T]):
    """Each iteration starts again; pages are not kept after they have been read."""

    def __init__(self, client: AsksLater, route: Route) -> None:
        self._client, self._route = client, route

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page:
                yield item

    def pages(self) -> AsyncGenerator[Page[T], None]:
        return self._walk(JSON)

    async def _walk(self, form: Form[C]) -> AsyncGenerator[C, None]:
        place = self._client.place(self._route, form)
        while not place.is_at_end:
            yield await self._client.page(place)


class AsyncHistory(AsyncWalk[Candle]):
    """Closed candles, oldest first."""

    def csv_pages(self) -> AsyncGenerator[str, None]:
        """Pages as CSV, as the service writes them: each begins with the line of column names."""
        return self._walk(CSV)

    async def to_pandas(self) -> pandas.DataFrame:
        """Indexed by `time`, in UTC."""
        require("to_pandas()", "pandas")
        return pandas_frame(await self._bars())

    async def to_polars(self) -> polars.DataFrame:
        require("to_polars()", "polars")
        return polars_frame(await self._bars())

    async def to_arrow(self) -> pyarrow.Table:
        require("to_arrow()", "pyarrow")
        return arrow_table(await self._bars())

    async def _bars(self) -> Bars:
        bars = Bars()
        async for content in self._walk(table_form()):
            bars.add(content)
        return bars
