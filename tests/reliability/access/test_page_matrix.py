"""Every URL that is no page of a model, by strangers, owners and staff: nobody gets at what is another's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import AnonymousUser, Permission
from django.db import transaction
from django.test import Client

from accounts.models import TierRequest, User
from signals_feed.models import Signal
from signals_feed.publishers.requests import PublisherRequest
from tests.factories import make_signal, make_user
from tests.reliability.access.permissions.matrix import rows_written
from tests.reliability.access.permissions.people import (
    SUPER,
    People,
    Role,
    everything_of_everybody,
    powers_of_everybody,
)
from tests.reliability.access.permissions.urls import Url, admin_urls, ask, other_urls
from tests.reliability.fixtures import Tell
from tests.staff import staff_client

from .permissions import pages

pytestmark = [pytest.mark.django_db, pytest.mark.row("30", "no forbidden access succeeds")]
SHUT = (302, 401, 403, 404, 405, 429)
# What somebody might send along to get more than they are offered.
GREEDY = {
    **{"tier": "premium", "is_staff": "on", "is_superuser": "on", "is_active": "on", "is_demo": "on"},
    **{"user": "1", "account": "1", "groups": "1", "user_permissions": "1", "verified": "on"},
}


def kind_of(url: Url) -> str:
    if pages.is_keyed(url.pattern, url.name):
        return "keyed"
    known = {"open": pages.OPEN, "own": pages.OWN, "row": pages.OF_A_ROW, "leads on": pages.LEADS_ON}
    return next((kind for kind, names in known.items() if url.name in names), "unknown")


def test_every_url_of_the_site_is_covered(tell: Tell) -> None:
    unknown = [url.pattern for url in other_urls() if kind_of(url) == "unknown"]

    tell(f"{len(unknown)} of {len(other_urls())} URLs not covered")
    assert len(other_urls()) > 60
    assert unknown == []


class Crowd:
    """One whose rows are tried, and those who try."""

    def __init__(self) -> None:
        self.people = People(Role("superuser", SUPER))
        self.owner = self.people.users["plain"]
        self.signal = make_signal(user=self.owner)
        self.clients = {
            "anonymous": Client(),
            "owner": logged_in(self.owner),
            "stranger": logged_in(make_user("mallory")),
            "staff": staff_client(self.people.users["self"]),
        }
        session = UserSession.objects.create(user=self.owner, ip="127.0.0.1", session_key="x" * 32)
        self.rows: dict[str, Callable[[], Any]] = {
            "end_session": lambda: session.pk,
            "withdraw_tier_request": lambda: TierRequest.objects.get(account=self.owner.account).pk,
            "withdraw_publisher_request": lambda: PublisherRequest.objects.get(account=self.owner.account).pk,
            "roll_key": lambda: self.owner.account.keys.get().pk,
            "revoke_key": lambda: self.owner.account.keys.get().pk,
            "close_signal": lambda: self.signal.pk,
            "mfa_remove_webauthn": self._passkey,
            "mfa_edit_webauthn": self._passkey,
        }

    def _passkey(self) -> int:
        made = Authenticator.objects.filter(user=self.owner, type="webauthn").first()
        made = made or Authenticator.objects.create(user=self.owner, type="webauthn", data={"name": "mine"})
        return int(made.pk)

    def state(self) -> tuple[Any, ...]:
        """Of the owner, and of nobody else."""
        sessions = list(UserSession.objects.filter(user=self.owner).values_list("pk", flat=True))
        signal = Signal.objects.values_list("status", "close_reason").get(pk=self.signal.pk)
        names = list(Authenticator.objects.filter(user=self.owner).order_by("pk").values_list("pk", "data"))
        return everything_of_everybody()[self.owner.pk], sessions, signal, names


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_no_role_reaches_forbidden_pages_of_the_site(tell: Tell) -> None:
    crowd, cells = Crowd(), 0
    holes: list[str] = []
    for url in other_urls():
        kind = kind_of(url)
        address = pages.address_of(url.pattern, crowd.rows.get(url.name, lambda: 1)())
        # What a cell does is undone.
        before, powers = crowd.state(), powers_of_everybody()
        for role, client in crowd.clients.items():
            for method, send in (("GET", client.get), ("POST", client.post)):
                cells += 1
                with transaction.atomic():
                    written = rows_written()
                    answer = send(address, GREEDY if method == "POST" else {})
                    cell = f"{method} {address} by {role}: {answer.status_code}"
                    has_written = rows_written() != written
                    if has_written and role != "owner" and crowd.state() != before:
                        holes.append(f"{cell}, and something of the owner changed")
                    now = powers_of_everybody() if has_written else powers
                    if any(now[pk] != held for pk, held in powers.items() if pk in now):
                        holes.append(f"{cell}, and powers changed")
                    is_shut = answer.status_code in SHUT
                    if kind == "keyed" and not is_shut:
                        holes.append(cell)
                    if kind in ("own", "row") and role == "anonymous" and not is_shut:
                        holes.append(cell)
                    is_absent = answer.status_code in (302, 404, 405)
                    if kind == "row" and role in ("stranger", "staff") and not is_absent:
                        holes.append(cell)
                    transaction.set_rollback(True)

    tell(f"{len(holes)} of {cells} attempts")
    assert holes == []


@pytest.mark.parametrize(
    "name", ["revoke_key", "withdraw_tier_request", "withdraw_publisher_request", "end_session"]
)
def test_only_the_owner_of_a_record_may_change_it(name: str) -> None:
    """The control: the same request, by the one whose row it is."""
    crowd = Crowd()
    url = next(url for url in other_urls() if url.name == name)
    address = pages.address_of(url.pattern, crowd.rows[name]())
    before = crowd.state()
    crowd.clients["stranger"].post(address)
    assert crowd.state() == before
    crowd.clients["owner"].post(address)
    assert crowd.state() != before


def staff_with(*powers: str) -> User:
    user = make_user(is_staff=True)
    for power in powers:
        app, codename = power.split(".")
        user.user_permissions.add(Permission.objects.get(content_type__app_label=app, codename=codename))
    return user


QUERY = "?app_label=account&model_name=emailaddress&field_name=user"


def test_other_pages_of_the_back_office_open_only_to_permitted_roles(tell: Tell) -> None:
    holes, cells = [], 0
    names = Permission.objects.values_list("content_type__app_label", "codename")
    single = {f"{app}.{name}": staff_with(f"{app}.{name}") for app, name in names}
    for url in admin_urls():
        key = url.name if url.name in pages.STAFF_ONLY else url.pattern
        if key not in pages.STAFF_ONLY:
            continue
        address = pages.address_of(url.pattern) + (QUERY if key == "autocomplete" else "")
        needed = pages.STAFF_ONLY[key]
        enough = needed if len(needed) == 1 else frozenset[str]()
        enough |= pages.ALSO.get(key, frozenset())
        strangers: list[tuple[str, Any]] = [("anonymous", AnonymousUser()), ("plain user", make_user())]
        if needed:
            strangers += [("staff without permissions", staff_with())]
            strangers += [(power, staff) for power, staff in single.items() if power not in enough]
        for role, user in strangers:
            for method in ("GET", "POST"):
                cells += 1
                status = ask(method, address, user).status_code
                if status not in SHUT:
                    holes.append(f"{method} {address} by {role}: {status}")
        if needed:
            cells += 1
            status = ask("GET", address, staff_with(*needed)).status_code
            assert status == 200, f"{address} does not open to {needed}"

    tell(f"{len(holes)} of {cells} attempts")
    assert cells > 500
    assert holes == []
