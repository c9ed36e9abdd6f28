"""Candles, to look at: millions of rows, so always one instrument and interval, and never a count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import RangeDateTimeFilter
from unfold.paginator import InfinitePaginator

from accounts.back_office import ReadOnlyAdmin
from instruments.admin import price_column
from instruments.models import Instrument
from market.prices.candles import TIMEFRAMES

from .back_office import ingest_keys as _ingest_keys  # noqa: F401 - registers their page
from .models import Candle

if TYPE_CHECKING:
    from django.contrib.admin import SimpleListFilter as DropdownFilter
else:
    from unfold.contrib.filters.admin import DropdownFilter


PRICES = ("open_price", "high_price", "low_price", "close_price")


class ChosenFilter(DropdownFilter):
    """A filter that is never off: without a choice it takes the first."""

    all_option = None

    def value(self) -> str:
        offered = [str(value) for value, _ in self.lookup_choices]
        chosen = super().value()
        return chosen if chosen in offered else offered[0]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Candle]) -> QuerySet[Candle]:
        return queryset.filter(**{str(self.parameter_name): self.value()})


class InstrumentFilter(ChosenFilter):
    title = "instrument"
    parameter_name = "instrument"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        return list(Instrument.objects.order_by("symbol").values_list("pk", "symbol"))


class TimeframeFilter(ChosenFilter):
    title = "timeframe"
    parameter_name = "timeframe"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[Any, str]]:
        return [(name, name) for name in TIMEFRAMES]


@admin.register(Candle)
class CandleAdmin(ReadOnlyAdmin[Candle]):
    list_display = ("opened_at", "symbol", "timeframe", *PRICES, "traded", "basis", "partial")
    fields = (
        "opened_at",
        "instrument",
        "timeframe",
        *PRICES,
        "highest_ask",
        "lowest_ask",
        "traded",
        "basis",
        "partial",
    )
    list_select_related = ("instrument",)
    list_filter = (InstrumentFilter, TimeframeFilter, ("opened_at", RangeDateTimeFilter))
    # With both filters on this is the unique index read backwards.
    ordering = ("-opened_at",)
    paginator = InfinitePaginator

    open_price, high_price = price_column("open"), price_column("high")
    low_price, close_price = price_column("low"), price_column("close")
    highest_ask, lowest_ask = price_column("ask_high"), price_column("ask_low")

    @admin.display(description="Volume")
    def traded(self, candle: Candle) -> str:
        return f"{candle.volume.normalize():f}"

    @admin.display(description="Symbol")
    def symbol(self, candle: Candle) -> str:
        return candle.instrument.symbol
