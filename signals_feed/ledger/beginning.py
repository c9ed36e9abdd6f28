"""When the new rules begin: once each process that runs says that it knows them. Until then all publish by
those of before, which every version understands."""

from collections.abc import Callable

from signals_feed.models import RulesBegun
from signals_feed.record import RULES

# The rules that this version can follow.
KNOWN = RULES

oldest_known: list[Callable[[], int | None]] = []
"""Handed down: the oldest rules that some processes know; None if none of them runs."""


def have_begun() -> bool:
    return RulesBegun.objects.filter(rules=RULES).exists()


def are_due() -> bool:
    """Whether the next publication goes by them."""
    if have_begun():
        return True
    known = [rules for each in oldest_known if (rules := each()) is not None]
    return bool(known) and min(known) >= RULES


def begin_when_known() -> bool:
    """Whether they have begun. They do not end, even if a process of the version before starts again."""
    if not are_due():
        return False
    RulesBegun.objects.get_or_create(rules=RULES)
    return True
