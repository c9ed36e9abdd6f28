"""Removes rows that are no longer needed, in the background, a few at a time, in one process. Among them are
users who signed up, never confirmed an address and never logged in: any visitor can create those, by any
name."""

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Any

from allauth.account.models import EmailAddress
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db.models import CharField, Exists, OuterRef, QuerySet
from django.db.models.functions import Cast
from django.utils import timezone

from accounts.models import Attempt, PageSession, User, VisitorAiUsage
from core.background import BackgroundLoop, scattered
from core.database import UNANSWERED
from core.events.outbox import ControlEvent
from core.fault_log import EachFault
from core.threads import in_thread

logger = logging.getLogger(__name__)
LOOK_EVERY_S = 600
AT_ONCE = 200
PAUSE_S = 0.05

# Every process reads an event within a second. Events of an account are kept longer because its owner sees
# them.
EVENTS_KEPT, EVENTS_OF_ACCOUNTS_KEPT = timedelta(days=30), timedelta(days=400)
ORPHANS_KEPT = timedelta(days=1)


def old_rows(now: datetime) -> tuple[QuerySet[Any], ...]:
    """The rows of each kind that are no longer needed."""
    orphaned = now - ORPHANS_KEPT
    # The last one stays: by it every process sees that the database is still the one it knows.
    events = ControlEvent.objects.exclude(pk__in=ControlEvent.objects.order_by("-pk").values("pk")[:1])
    return (
        Session.objects.filter(expire_date__lt=now),
        without_session(UserSession.objects.filter(last_seen_at__lt=orphaned)),
        without_session(PageSession.objects.filter(last_used_at__lt=orphaned)),
        Attempt.objects.filter(expires__lt=now),
        VisitorAiUsage.objects.filter(day__lt=orphaned.date()),
        events.filter(account_id=None, created_at__lt=now - EVENTS_KEPT),
        events.filter(created_at__lt=now - EVENTS_OF_ACCOUNTS_KEPT),
        unconfirmed_users(now),
    )


def without_session(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows.filter(~Exists(Session.objects.filter(session_key=OuterRef("session_key"))))


def unconfirmed_users(now: datetime) -> QuerySet[User]:
    """Only their address refers to them, whatever other tables come to refer to users. Those whom staff
    made or locked out are left to staff."""
    days = settings.UNCONFIRMED_KEPT_DAYS
    if not days:
        return User.objects.none()
    found = User.objects.filter(
        date_joined__lt=now - timedelta(days=days),
        last_login=None,
        is_active=True,
        is_staff=False,
        is_superuser=False,
        groups=None,
        user_permissions=None,
    )
    addresses = EmailAddress.objects.filter(user=OuterRef("pk"))
    found = found.filter(Exists(addresses), ~Exists(addresses.filter(verified=True)))
    for relation in User._meta.related_objects:
        model = relation.related_model
        if model is not EmailAddress:
            rows = model._default_manager.filter(**{relation.field.name: OuterRef("pk")})
            found = found.filter(~Exists(rows))
    by_staff = LogEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(User),
        object_id=Cast(OuterRef("pk"), CharField()),
    )
    return found.filter(~Exists(by_staff))


def remove_some(old: QuerySet[Any]) -> int:
    """One by one, because Django sends a signal for each session."""
    found = list(old.order_by().values_list("pk", flat=True)[:AT_ONCE])
    if found:
        # The query runs again, because a row may have become needed.
        old.filter(pk__in=found).delete()
    return len(found)


async def prune() -> None:
    """The first process that asks has the turn for a while."""
    if not await in_thread(lambda: cache.add("pruning", 1, timeout=LOOK_EVERY_S)):
        return
    removed = 0
    for old in await in_thread(old_rows, timezone.now()):
        while count := await in_thread(remove_some, old):
            removed += count
            # Other writers to the database get their turn.
            await asyncio.sleep(PAUSE_S)
    if removed:
        logger.info("%d rows that were no longer needed were removed", removed)


pruner = BackgroundLoop(
    "pruning",
    prune,
    fault=EachFault(logger, "Old rows stay for now"),
    broke="Old rows could not be removed",
    passing=UNANSWERED,
    before=scattered(LOOK_EVERY_S),
)
