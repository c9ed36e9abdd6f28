"""Somebody with a browser who makes keys and publishes signals, and knows what they were told."""

from __future__ import annotations

import re
from importlib import import_module
from uuid import uuid4

import httpx
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import Permission

from accounts.key_text import API_KEY_LEAD
from accounts.models import User
from tests.factories import make_account, make_user
from tests.patience import PATIENCE_S
from tests.reliability.services.processes import Process

TOKEN = "t" * 32
NEWEST = re.compile(r'name="newest" value="([^"]+)"')
SHOWN = re.compile(rf"{API_KEY_LEAD}[0-9A-Za-z]{{42}}")
# No price of a test comes near its stop or its target.
TERMS = {"direction": "buy", "stop_loss": "0.5", "take_profit": "9"}


class Person:
    def __init__(self, name: str) -> None:
        """In the database that the models mean now."""
        self.user = make_user(name)
        make_account(self.user)
        self.user.user_permissions.add(Permission.objects.get(codename="publish_signal"))
        self._cookies = {settings.SESSION_COOKIE_NAME: log_in(self.user), settings.CSRF_COOKIE_NAME: TOKEN}
        self.keys: list[str] = []
        """The secrets that were shown."""
        self.signals: list[str] = []
        """The forms that were said to be published."""
        self.refused: list[int] = []

    def issue(self, server: Process) -> None:
        page = self._ask(server, "GET", "/settings/keys")
        if page.status_code != 200:
            self.refused.append(page.status_code)
            return
        (newest,) = NEWEST.findall(page.text)
        answer = self._ask(server, "POST", "/settings/keys", name="test", newest=newest)
        if answer.status_code == 200:
            self.keys.append(SHOWN.findall(answer.text)[0])
        else:
            self.refused.append(answer.status_code)

    def publish(self, server: Process, symbol: str, entry: str) -> None:
        token = str(uuid4())
        terms = TERMS | {"symbol": symbol, "entry": entry, "token": token}
        answer = self._ask(server, "POST", "/settings/signals", **terms)
        if answer.status_code == 302:
            self.signals.append(token)
        else:
            self.refused.append(answer.status_code)

    def _ask(self, server: Process, method: str, path: str, **fields: str) -> httpx.Response:
        data = {"csrfmiddlewaretoken": TOKEN} | fields if fields else None
        with httpx.Client(cookies=self._cookies, timeout=PATIENCE_S) as client:
            return client.request(method, f"{server.url}{path}", data=data)


def log_in(user: User) -> str:
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return str(session.session_key)
