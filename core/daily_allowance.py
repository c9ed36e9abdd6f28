"""Daily allowances, counted in the database."""

from typing import Any, TypeVar

from django.db.models import F, Manager, Model

M = TypeVar("M", bound=Model)


def spend(uses: Manager[M], limit: int, **whose: Any) -> bool:
    """Count one use if the day's allowance has room; the row count decides, so races cannot."""
    uses.get_or_create(**whose)
    return uses.filter(**whose, used__lt=limit).update(used=F("used") + 1) == 1
