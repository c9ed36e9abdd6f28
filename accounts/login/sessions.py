"""Logins of visitors, and the account they share where the terminal is public: both are short, and the number
per network is limited. Also the keys that pages get for the login they belong to."""

import secrets
import threading
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.middleware import SessionMiddleware
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache

from accounts.keys.caller import BrowserToken, issue_browser_token
from accounts.limits.window import MemoryWindow
from accounts.models import Account, PageSession, Tier, User
from core.addresses import network_of
from core.contract.errors import ApiError, MethodNotAllowed, RetryLater, answer_exception, new_request_id
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.plain_json import encode
from core.times import iso_ms

# Enough to answer a passkey's challenge or open a link from a mail.
STRANGERS_AGE_S = 3600
NEW_A_MINUTE = 30
VISITOR = "visitor"


class Strangers:
    """New sessions of people who are not logged in, by network; of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.window = MemoryWindow()

    def admit(self, address: str) -> bool:
        # Pages run in threads.
        with self._lock:
            return self.window.count(network_of(address), NEW_A_MINUTE, cost=1).admitted


strangers = Strangers()


class SessionStore(DatabaseStore):
    def cycle_key(self) -> None:
        if not self._was_signed_before():
            super().cycle_key()

    async def acycle_key(self) -> None:
        if not await sync_to_async(self._was_signed_before)():
            await super().acycle_key()

    def _was_signed_before(self) -> bool:
        """With a SECRET_KEY that is a fallback now. Django would rename the session, which ends the streams
        of its pages, logs out a browser that requests two pages at once, and repeats while processes change
        over one after the other."""
        if not settings.SECRET_KEY_FALLBACKS or SESSION_KEY not in self:
            return False
        user = get_user_model()._default_manager.filter(pk=self[SESSION_KEY]).first()
        shown = self.get(HASH_SESSION_KEY, "")
        return user is not None and any(
            constant_time_compare(shown, each) for each in user.get_session_auth_fallback_hash()
        )

    def get_expiry_age(self, **kwargs: Any) -> int:
        age: int = super().get_expiry_age(**kwargs)
        return min(age, STRANGERS_AGE_S) if self._is_a_strangers else age

    def get_expiry_date(self, **kwargs: Any) -> datetime:
        at: datetime = super().get_expiry_date(**kwargs)
        return min(at, timezone.now() + timedelta(seconds=STRANGERS_AGE_S)) if self._is_a_strangers else at

    @property
    def _is_a_strangers(self) -> bool:
        return SESSION_KEY not in self and VISITOR not in self


class SessionsOfStrangers(SessionMiddleware):
    """Limits the sessions of strangers before one is stored, because a program could fill the database with
    them."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        address = request.META.get("REMOTE_ADDR") or ""
        if would_be_new(request) and not strangers.admit(address):
            # Emptied, so that nothing of it is saved.
            request.session = SessionStore()
            response = render(request, "429.html", status=429)
            response["Retry-After"] = "60"
            return response
        return super().process_response(request, response)


def would_be_new(request: HttpRequest) -> bool:
    session = request.session
    return (
        session.modified
        and session.session_key is None
        and not session.is_empty()
        and SESSION_KEY not in session
    )


# Visitors of a public terminal: each browser session has its own account for as long as it is used.
MOST_AN_HOUR = 60
"""Accounts per address: enough for people behind one router, too few for a program that collects them."""
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


# How often the last use is written, which keeps a visitor's account.
USE_WRITTEN_EVERY = timedelta(minutes=1)


class LoginNeeded(ApiError):
    status_code, code = 403, "login_required"
    message = "Log in first: this page has no account to ask for."


@never_cache
def page_token(request: HttpRequest) -> HttpResponse:
    try:
        text, token = issue_token(request)
    except ApiError as error:
        answer = answer_exception(error, new_request_id())
        return HttpResponse(
            answer.content, status=answer.status, headers=answer.headers, content_type="application/json"
        )
    token_body = {"token": text, "expires_at": iso_ms(1000 * token.ends_at)}
    return HttpResponse(encode(token_body), content_type="application/json")


def issue_token(request: HttpRequest) -> tuple[str, BrowserToken]:
    if request.method != "POST":
        raise MethodNotAllowed(("POST",))
    page_session = find_page_session(request)
    now = timezone.now()
    if now - page_session.last_used_at > USE_WRITTEN_EVERY:
        PageSession.objects.filter(pk=page_session.pk).update(last_used_at=now)
    return issue_browser_token(page_session.pk)


def find_page_session(request: HttpRequest) -> PageSession:
    if request.user.is_authenticated:
        account = Account.objects.for_user(request.user)
        key = str(request.session.session_key)
        return PageSession.objects.get_or_create(session_key=key, defaults={"account": account})[0]
    page_session = find_visitor(request)
    if page_session is None:
        raise LoginNeeded
    return page_session
