"""When new rules begin: once each running process reports that it knows them. Until then, all publish by the
previous rules, which every version understands."""

from datetime import datetime

from django.db.models import Max
from django.utils import timezone

from core.version import known_rules
from signals_feed.models import RulesBegun, Signal
from signals_feed.record import RULES


def have_begun() -> bool:
    return RulesBegun.objects.filter(rules=RULES).exists()


def are_due() -> bool:
    """Whether the next publication goes by them."""
    return have_begun() or _are_known()


def begin_when_known() -> bool:
    """Whether they have begun. They do not end, even if a process of the version before starts again."""
    if have_begun():
        return True
    if not _are_known():
        return False
    RulesBegun.objects.get_or_create(rules=RULES, defaults={"begun_at": _after_all_before()})
    return True


def _are_known() -> bool:
    oldest = known_rules.oldest()
    return oldest is not None and oldest >= RULES


def _after_all_before() -> datetime:
    """The clocks of processes differ, and what was published before them counts."""
    before = Signal.objects.filter(rules__lt=RULES).exclude(is_demo=True)
    last: datetime | None = before.aggregate(last=Max("published_at"))["last"]
    return max(timezone.now(), last or timezone.now())
