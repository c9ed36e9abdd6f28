"""Instruments and their trading calendars."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.back_office import StaffAdmin

from .models import Instrument, TradingCalendar, WithheldSource
from .saving import CALENDARS, INSTRUMENTS, hand_on_again, withhold
from .table_pages import TableAdmin

CONTRACT = (("pip_size", "digits"), ("contract_size", "margin_rate"), ("min_lot", "max_lot"))
DATA = (("source", "fallback"), ("volume_kind", "order_flow_source"), ("stale_after_s", "outlier_percent"))


@admin.register(Instrument)
class InstrumentAdmin(TableAdmin[Instrument]):
    table = INSTRUMENTS
    list_display = ("symbol", "name", "type", "calendar", "pip", "digits", "active")
    list_select_related = ("calendar",)
    list_filter = ("active", "type", "calendar")
    search_fields = ("symbol", "name")
    autocomplete_fields = ("calendar",)
    # Clients, feeds and published signals know an instrument by its symbol.
    set_once = ("symbol",)
    never = ("delete",)
    """Deactivate instead: deleting would take every candle along."""
    fieldsets = (
        (None, {"fields": ("symbol", "name", ("type", "calendar"), "active")}),
        ("Contract", {"fields": CONTRACT}),
        ("Data", {"fields": DATA}),
    )

    @admin.display(description="Pip size")
    def pip(self, instrument: Instrument) -> str:
        """Without the zeros of the column."""
        return f"{instrument.pip_size.normalize():f}"


@admin.register(TradingCalendar)
class TradingCalendarAdmin(TableAdmin[TradingCalendar]):
    table = CALENDARS
    list_display = ("name", "timezone", "sessions")
    search_fields = ("name",)
    # Tables of instruments refer to a calendar by its name.
    set_once = ("name",)

    def has_delete_permission(self, request: HttpRequest, obj: TradingCalendar | None = None) -> bool:
        used = obj is not None and obj.instruments.exists()
        return not used and super().has_delete_permission(request, obj)


@admin.register(WithheldSource)
class WithheldSourceAdmin(StaffAdmin[WithheldSource]):
    """The sources whose data are handed on to nobody. Deleting a row hands them on again."""

    list_display = ("name", "why", "since")
    set_once = ("name",)

    def save_model(self, request: HttpRequest, obj: WithheldSource, form: Any, change: bool) -> None:
        withhold(obj, by=request.user.get_username())

    def delete_model(self, request: HttpRequest, obj: WithheldSource) -> None:
        hand_on_again([obj], by=request.user.get_username())

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[WithheldSource]) -> None:
        hand_on_again(queryset, by=request.user.get_username())


def price_column(name: str, title: str = "") -> Callable[[Any, Any], str]:
    """A column for rows that have an instrument, with its decimals; `name` is the field of the price."""

    @admin.display(description=title or name.replace("_", " ").capitalize())
    def column(page: Any, row: Any) -> str:
        price = getattr(row, name)
        return "-" if price is None else f"{price:,.{row.instrument.digits}f}"

    return column
