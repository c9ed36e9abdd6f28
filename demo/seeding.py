"""Loads the demo, and removes it again."""

import time
from collections.abc import Callable

from django.conf import settings
from django.core.management.base import CommandError
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.models import Account, User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from instruments.catalogue import catalogue
from market.models import UnfinishedPast
from news.models import NewsItem, Source
from signals_feed.publishing import remove_demo

from .instruments import brought, brought_calendars, seed_instruments
from .market import remove_market, seed_recent
from .news import lacks_news, seed_news
from .past import LOOK_S, announce_makers, claim, make_pasts
from .people import hold_demo, seed_people
from .progress import Progress
from .signals import lacks_signals, seed_signals

# Two share the work well; the database has one writer at a time.
MOST_MAKERS = 2


def refuse_outside_demo() -> None:
    """Invented prices and people must not mix with real ones."""
    if settings.PRODUCTION:
        raise CommandError("This is a command of the demo, and PRODUCTION=1 has none. Nothing was changed.")
    if not settings.DEMO:
        raise CommandError("This is a command of the demo, which DEMO=0 switches off. Nothing was changed.")


def seed(progress: Progress) -> None:
    """DEMO_SEED and the secret decide what is made. Loading again adds what is missing."""
    begin(progress)
    finish(progress)


def begin(progress: Progress) -> None:
    """What a service needs to be alive: people, instruments, and a market that goes on from now."""
    refuse_outside_demo()
    seed_instruments(progress)
    seed_people()
    seed_recent(_now_ms(), progress)


def makers_needed() -> int:
    """For how many processes there is something left to `finish`."""
    if UnfinishedPast.objects.exists():
        announce_makers()
        return MOST_MAKERS
    return int(lacks_signals() or lacks_news())


def finish(progress: Progress, go_on: Callable[[], bool] = lambda: True) -> None:
    """All the rest: the past, and what is made of it. `go_on` is asked between the steps."""
    refuse_outside_demo()
    pasts = UnfinishedPast.objects.all()
    if not pasts.exists():
        _fill_feed(progress)
        return
    # Several processes make the pasts, and one of them does what follows.
    while make_pasts(progress, go_on) and (first := pasts.order_by("pk").first()) is not None:
        if claim(pasts.filter(pk=first.pk)) is not None:
            _fill_feed(progress)
            pasts.delete()
            progress("The demo's past is complete")
        else:
            time.sleep(LOOK_S)


def _fill_feed(progress: Progress) -> None:
    catalogue.load_now()
    seed_signals(_now_ms(), progress)
    seed_news(_now_ms(), progress)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


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
    hold_demo()
    progress("Removing the demo data")
    remove_demo(list(demo_users.values_list("pk", flat=True)))
    NewsItem.objects.filter(is_demo=True).delete()
    # A source that somebody has resumed is theirs.
    Source.objects.filter(is_demo=True, polled_at=None).delete()
    remove_market(_now_ms())
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
