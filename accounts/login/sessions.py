"""Sessions of people who are not logged in are short, and nobody can open many of them."""

import threading
from datetime import datetime, timedelta
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from accounts.limits.window import MemoryWindow
from core.addresses import network_of

# For a passkey's challenge or a link out of a mail: nobody takes longer over either.
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
        of its pages, logs out whoever asks for two pages at once, and does so again and again while processes
        change over one after the other."""
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
    """Asks before a stranger's first row is written: a program would fill the database with them."""

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        address = request.META.get("REMOTE_ADDR") or ""
        if would_be_new(request) and not strangers.admit(address):
            # Forgotten, so that nothing of it is saved.
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
