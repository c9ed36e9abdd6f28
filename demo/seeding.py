"""Loads the demo, and removes it again."""

import time

from django.conf import settings
from django.core.management.base import CommandError
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.models import Account, User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from news.models import NewsItem, Source
from signals_feed.publishing import remove_demo

from .instruments import Progress, brought, brought_calendars, seed_instruments
from .market import remove_market, seed_candles
from .news import seed_news
from .people import seed_people
from .signals import seed_signals


def refuse_outside_demo() -> None:
    """Invented prices and people must not mix with real ones."""
    if settings.PRODUCTION:
        raise CommandError("This is a command of the demo, and PRODUCTION=1 has none. Nothing was changed.")
    if not settings.DEMO:
        raise CommandError("This is a command of the demo, which DEMO=0 switches off. Nothing was changed.")


def seed(progress: Progress) -> None:
    """DEMO_SEED and the secret decide what is made. Loading again adds what is missing."""
    refuse_outside_demo()
    now_ms = time.time_ns() // 1_000_000
    seed_instruments(progress)
    seed_people()
    seed_candles(now_ms, progress)
    seed_signals(now_ms, progress)
    seed_news(now_ms, progress)


def is_there() -> bool:
    return _demo_users().exists()


def _demo_users() -> QuerySet[User]:
    return User.objects.filter(Q(account__is_demo=True) | Q(account__visitor_from__gt=""))


@transaction.atomic
def remove(progress: Progress) -> None:
    """Removes what the demo brought. What people have made meanwhile stays."""
    demo_users = _demo_users()
    if not demo_users.exists():
        return
    progress("Removing the demo data")
    remove_demo(list(demo_users.values_list("pk", flat=True)))
    NewsItem.objects.filter(is_demo=True).delete()
    # A source that somebody has resumed is theirs.
    Source.objects.filter(is_demo=True, polled_at=None).delete()
    remove_market(time.time_ns() // 1_000_000)
    _remove_instruments()
    for account in Account.objects.filter(user__in=demo_users):
        ControlEvent.objects.publish(EventKind.ACCOUNT_CHANGED, by="demo", account=account.pk)
    demo_users.delete()
    ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, by="demo")


def _remove_instruments() -> None:
    """An instrument stays if signals, candles, prices or news name it, or if somebody gave it a source."""
    unused = {"candles": None, "signals": None, "news": None, "last_quote": None}
    brought().filter(**unused, source="", fallback="").delete()
    brought_calendars().filter(instruments=None).delete()
