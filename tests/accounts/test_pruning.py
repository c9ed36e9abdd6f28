"""What nobody needs any more goes by itself, a little at a time, and nothing else does."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from accounts.models import Attempt, PageSession, VisitorAiUsage
from accounts.pruning import AT_ONCE, prune, remove_some
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.threads import in_thread
from tests.factories import make_account

pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.services]
DAY = timedelta(days=1)


def make_session(key: str, expires: datetime) -> None:
    Session.objects.create(session_key=key, session_data="", expire_date=expires)


def make_event(age: timedelta, account: int | None = None) -> int:
    with transaction.atomic():
        event = ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, account=account)
    ControlEvent.objects.filter(pk=event.pk).update(created_at=timezone.now() - age)
    return event.pk


def make_old_and_new() -> set[int]:
    """The events that stay."""
    now, account = timezone.now(), make_account()
    make_session("old", now - DAY)
    make_session("new", now + DAY)
    for key in ("old", "gone", "new"):
        UserSession.objects.create(
            user=account.user, ip="127.0.0.1", session_key=key, last_seen_at=now - 2 * DAY
        )
        PageSession.objects.create(account=account, session_key=key, last_used_at=now - 2 * DAY)
    Attempt.objects.create(cache_key="old", value="", expires=now - DAY)
    Attempt.objects.create(cache_key="new", value="", expires=now + DAY)
    VisitorAiUsage.objects.create(network="old", day=(now - 2 * DAY).date())
    VisitorAiUsage.objects.create(network="new", day=now.date())
    make_event(31 * DAY)
    make_event(401 * DAY, account.pk)
    return {make_event(29 * DAY), make_event(399 * DAY, account.pk)}


def kept() -> tuple[set[str], ...]:
    return (
        set(Session.objects.values_list("session_key", flat=True)),
        set(UserSession.objects.values_list("session_key", flat=True)),
        set(PageSession.objects.values_list("session_key", flat=True)),
        # Whose turn it is stands there as well.
        set(Attempt.objects.exclude(cache_key__endswith="pruning").values_list("cache_key", flat=True)),
        set(VisitorAiUsage.objects.values_list("network", flat=True)),
    )


def events() -> set[int]:
    return set(ControlEvent.objects.filter(kind=EventKind.INSTRUMENTS_CHANGED).values_list("pk", flat=True))


async def test_old_rows_go_and_the_others_stay_and_the_end_of_a_session_is_told() -> None:
    staying = await in_thread(make_old_and_new)
    await prune()
    assert await in_thread(kept) == ({"new"},) * 5
    assert await in_thread(events) == staying
    ended = await in_thread(ControlEvent.objects.filter(kind=EventKind.SESSION_ENDED).count)
    assert ended == 1


def test_no_handful_is_larger_than_it_may_be() -> None:
    now = timezone.now()
    Session.objects.bulk_create(
        Session(session_key=str(number), session_data="", expire_date=now - DAY)
        for number in range(AT_ONCE + 1)
    )
    expired = Session.objects.filter(expire_date__lt=now)
    assert [remove_some(expired) for _ in range(3)] == [AT_ONCE, 1, 0]


async def test_one_process_has_the_turn() -> None:
    await in_thread(cache.clear)
    left = []
    for _ in range(2):
        await in_thread(make_session, "old", timezone.now() - DAY)
        await prune()
        left.append(await in_thread(Session.objects.count))
    assert left == [0, 1]
