"""Instruments and calendars as tables: the admin's import and export, and `load_instruments`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from import_export.fields import Field
from import_export.resources import ModelResource
from import_export.widgets import Widget

from .models import Instrument, TradingCalendar
from .sheets import Sheet

# import-export's own widgets take 2.7 for the integer 2, "yes" for false and 1_000 for 1000.
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


class NumberWidget(Widget):  # type: ignore[misc]
    def clean(self, value: str, row: Mapping[str, str] | None = None, **_: Any) -> Decimal | None:
        if value and not _NUMBER.fullmatch(value):
            raise ValueError(f"“{value}” is no plain number such as 0.0001.")
        return Decimal(value) if value else None

    def render(self, value: Decimal | None, obj: Any = None, **_: Any) -> str:
        return "" if value is None else f"{value.normalize():f}"


class IntegerWidget(Widget):  # type: ignore[misc]
    def clean(self, value: str, row: Mapping[str, str] | None = None, **_: Any) -> int | None:
        if value and not (value.isascii() and value.isdigit() and len(value) < 10):
            raise ValueError(f"“{value}” is no whole number.")
        return int(value) if value else None


class BooleanWidget(Widget):  # type: ignore[misc]
    def clean(self, value: str, row: Mapping[str, str] | None = None, **_: Any) -> bool:
        if value.lower() not in _BOOLEANS:
            raise ValueError(f"“{value}” is neither true nor false.")
        return _BOOLEANS[value.lower()]

    def render(self, value: bool, obj: Any = None, **_: Any) -> str:
        return str(value).lower()


class CalendarWidget(Widget):  # type: ignore[misc]
    def clean(self, value: str, row: Mapping[str, str] | None = None, **_: Any) -> TradingCalendar:
        calendar = TradingCalendar.objects.filter(name=value).first()
        if calendar is None:
            raise ValueError(f"There is no trading calendar “{value}”.")
        return calendar

    def render(self, value: TradingCalendar | None, obj: Any = None, **_: Any) -> str:
        return value.name if value else ""


def number(name: str) -> Field:
    return Field(attribute=name, column_name=name, widget=NumberWidget())


def whole(name: str) -> Field:
    return Field(attribute=name, column_name=name, widget=IntegerWidget())


class TableResource(ModelResource):  # type: ignore[misc]
    """Rows are found by their key, checked as the forms check them, and written only if they differ."""

    key: str

    def before_import(self, dataset: Any, **kwargs: Any) -> None:
        self._seen: set[str] = set()

    def before_import_row(self, row: Mapping[str, str], **kwargs: Any) -> None:
        value = row[self.key]
        if value in self._seen:
            raise ValidationError({self.key: f"“{value}” is in the table twice."})
        self._seen.add(value)

    def import_data(self, dataset: Sheet, *args: Any, **kwargs: Any) -> Any:
        """The result speaks of lines of the file, which a cell of two lines puts out of step with rows."""
        result = super().import_data(dataset, *args, **kwargs)
        for row in (*result.invalid_rows, *result.error_rows):
            row.number = dataset.lines[row.number - 1]
        return result

    @classmethod
    def columns(cls) -> list[str]:
        return [field.column_name for field in cls().get_import_fields()]


class CalendarResource(TableResource):
    key = "name"

    class Meta:
        model = TradingCalendar
        fields = import_order = export_order = ("name", "timezone", "sessions", "holidays")
        import_id_fields = ("name",)
        skip_unchanged = clean_model_instances = use_transactions = True


class InstrumentResource(TableResource):
    key = "symbol"
    calendar = Field(attribute="calendar", column_name="calendar", widget=CalendarWidget())
    pip_size = number("pip_size")
    contract_size = number("contract_size")
    margin_rate = number("margin_rate")
    min_lot = number("min_lot")
    max_lot = number("max_lot")
    digits = whole("digits")
    stale_after_s = whole("stale_after_s")
    outlier_percent = number("outlier_percent")
    active = Field(attribute="active", column_name="active", widget=BooleanWidget())

    class Meta:
        model = Instrument
        fields = import_order = export_order = (
            *("symbol", "name", "type", "calendar", "pip_size", "contract_size", "margin_rate"),
            *(
                "min_lot",
                "max_lot",
                "digits",
                "volume_kind",
                "order_flow_source",
                "stale_after_s",
                "outlier_percent",
                "source",
                "fallback",
                "active",
            ),
        )
        import_id_fields = ("symbol",)
        skip_unchanged = clean_model_instances = use_transactions = True
