"""Visitors of a public terminal: each browser session has its own account for as long as it is used."""

import secrets
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone

from accounts.models import Account, PageSession, Tier, User
from core.addresses import network_of
from core.contract.errors import RetryLater
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

from .sessions import VISITOR

MOST_AN_HOUR = 60
"""Accounts for one address: enough for people behind one router, too few for a machine that collects them."""
IDLE = timedelta(days=1)

# At most this many are deleted when one is opened, so that no visitor waits long.
PRUNED_AT_ONCE = 100


class TooManyVisitors(RetryLater):
    status_code, code = 429, "too_many_visitors"
    message = "Too many visitors came from this address. Try again later, or log in."


def find_visitor(request: HttpRequest) -> PageSession | None:
    """Opens an account for the browser's session if it has none. None where the terminal is not public."""
    if not settings.PUBLIC_TERMINAL:
        return None
    session, address = request.session, request.META.get("REMOTE_ADDR") or ""
    known = PageSession.objects.filter(session_key=session.session_key or "").first()
    if known is not None and VISITOR in session:
        return known
    # Before the session, which is a row too.
    check_room(address)
    session.setdefault(VISITOR, True)
    if session.session_key is None:
        session.create()
    prune()
    # Another tab of the same browser may come first: then no account is opened.
    account: Any = partial(open_account, address)
    key = session.session_key
    return PageSession.objects.get_or_create(session_key=key, defaults={"account": account})[0]


@transaction.atomic
def open_account(address: str) -> Account:
    # Visitors who arrive at the same time take turns, so that all of them are counted.
    tier = Tier.objects.select_for_update(no_key=True).get(name="free")
    check_room(address)
    user = User(username=f"visitor-{secrets.token_hex(8)}")
    user.set_unusable_password()
    user.save()
    return Account.objects.create(user=user, tier=tier, visitor_from=network_of(address))


def check_room(address: str) -> None:
    since = timezone.now() - timedelta(hours=1)
    lately = Account.objects.filter(visitor_from=network_of(address), created_at__gt=since)
    if lately.count() >= MOST_AN_HOUR:
        raise TooManyVisitors(retry_after=600)


@transaction.atomic
def prune() -> None:
    """Delete the accounts of visitors who have been away for a day."""
    cutoff = timezone.now() - IDLE
    idle = (
        Account.objects.exclude(visitor_from="")
        .filter(created_at__lt=cutoff)
        .exclude(page_sessions__last_used_at__gte=cutoff)
        .order_by("pk")
    )
    gone = list(idle.values_list("pk", "user_id")[:PRUNED_AT_ONCE])
    User.objects.filter(pk__in=[user for _, user in gone]).delete()
    for account, _ in gone:
        ControlEvent.objects.publish(EventKind.SESSION_ENDED, account=account)
