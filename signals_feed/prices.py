"""How a price is kept."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.db import models


def price_field(**more: Any) -> models.DecimalField[Decimal, Decimal]:
    return models.DecimalField(max_digits=18, decimal_places=8, **more)


def price(value: float) -> Decimal:
    """As the market quoted it, digit by digit."""
    return Decimal(str(value))
