"""Prices in admin pages, with the decimals of their instrument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin


def price_column(name: str) -> Callable[[Any, Any], str]:
    """A column for rows that have an instrument; `name` is their field."""

    @admin.display(description=name.replace("_", " ").capitalize())
    def column(page: Any, row: Any) -> str:
        price = getattr(row, name)
        return "-" if price is None else f"{price:.{row.instrument.digits}f}"

    return column
