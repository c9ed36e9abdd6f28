"""The back office behind a second factor: every address of it, taken from the URLconf."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from allauth.account.authentication import get_authentication_records
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authenticator_added, authenticator_removed
from django.contrib.sessions.backends.cache import SessionStore
from django.dispatch import Signal
from django.test import Client, RequestFactory
from django.urls import URLPattern, URLResolver, get_resolver

from accounts.models import User
from tests.factories import make_account, make_user
from tests.staff import staff_client

from .factors import PASSWORD, PERIOD_S, code_of, enrol, log_in

pytestmark = pytest.mark.django_db
ASKS = "A second factor, please"

# Its own door, which sends on to allauth's.
DOOR = "/admin/login/"


@pytest.fixture(autouse=True)
def _long_period(settings: Any) -> None:
    settings.MFA_TOTP_PERIOD = PERIOD_S


@pytest.fixture
def boss() -> User:
    return make_user("boss", PASSWORD, is_staff=True, is_superuser=True)


def addresses(patterns: list[URLPattern | URLResolver], before: str = "/") -> Iterator[str]:
    for pattern in patterns:
        address = before + filled_in(str(pattern.pattern))
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, address)
        elif address.startswith("/admin/") and address != DOOR:
            yield address


def filled_in(route: str) -> str:
    """With something in the place of each parameter."""
    route = re.sub(r"\(\?P<app_label>(\w+)[^)]*\)", r"\1", route)
    route = re.sub(r"\(\?P<url>.*\)", "nothing/", route)
    return re.sub(r"<[^>]+>", "1", route).lstrip("^").rstrip("$")


ADDRESSES = sorted(set(addresses(get_resolver().url_patterns)))


def is_turned_away(answer: Any) -> bool:
    sent_to = str(answer.headers.get("Location", ""))
    return answer.status_code == 302 and (sent_to.startswith(f"{DOOR}?next=") or sent_to == "/admin/")


def reached(client: Client, *, by_post: bool = False) -> list[str]:
    ask = client.post if by_post else client.get
    # Leaving leads to the overview, which turns away in its turn.
    return [path for path in ADDRESSES if not is_turned_away(ask(path))]


def test_staff_without_a_factor_reach_no_page_of_the_admin(boss: User) -> None:
    client = log_in("boss")
    assert len(ADDRESSES) > 100
    assert reached(client) == []
    assert reached(client, by_post=True) == []


def test_a_session_from_before_the_factor_has_to_show_it(boss: User) -> None:
    old = log_in("boss")
    secret = enrol(log_in("boss"))
    page = old.get("/admin/accounts/tier/", follow=True)
    assert (page.status_code, ASKS in page.text) == (403, True)
    show = "/accounts/2fa/reauthenticate/?next=%2Fadmin%2Faccounts%2Ftier%2F"
    assert f'href="{show}"' in page.text
    answer = old.post(show, {"code": code_of(secret)}, follow=True)
    assert (answer.wsgi_request.path, answer.status_code) == ("/admin/accounts/tier/", 200)


@pytest.mark.parametrize(
    ("told", "kind", "shown"),
    [
        (authenticator_added, "totp", ["mfa"]),
        (authenticator_added, "recovery_codes", []),
        (authenticator_removed, "totp", []),
    ],
)
def test_to_add_a_factor_is_to_show_it_and_no_other_change_is(
    boss: User, told: Signal, kind: str, shown: list[str]
) -> None:
    request: Any = RequestFactory().get("/")
    request.session, request.user = SessionStore(), boss
    factor = Authenticator.objects.create(user=boss, type=kind, data={})
    told.send(Authenticator, request=request, user=boss, authenticator=factor)
    assert [each["method"] for each in get_authentication_records(request, boss)] == shown


def test_the_admin_opens_by_a_factor_but_none_that_is_gone_or_not_ones_own(boss: User, settings: Any) -> None:
    client = staff_client(boss)
    lists = [path for path in ADDRESSES if "/1/" not in path]
    assert len(lists) > 40
    assert [path for path in lists if is_turned_away(client.get(path))] == []
    client = staff_client(boss)
    client.force_login(make_user("other", PASSWORD, is_staff=True))
    assert is_turned_away(client.get("/admin/"))
    client = staff_client(boss)
    Authenticator.objects.all().delete()
    assert is_turned_away(client.get("/admin/"))
    # The demo opens it to its own user alone.
    make_account(boss)
    settings.DEMO = True
    client = Client(headers={"host": "127.0.0.1:8000"}, SERVER_NAME="127.0.0.1")
    client.force_login(boss)
    assert is_turned_away(client.get("/admin/"))
