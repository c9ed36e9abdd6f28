"""Where somebody is logged in, and ending it from elsewhere."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.keys.caller import find_browser_caller, read_browser_token
from accounts.models import User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from tests.accounts.browser import browser, token_of
from tests.factories import make_account, make_user

pytestmark = pytest.mark.django_db
PASSWORD = "a long walk 7"
PAGE = "/accounts/sessions/"


@pytest.fixture
def user() -> User:
    return make_account(make_user("ada", PASSWORD)).user


def log_in(name: str = "ada", address: str = "192.0.2.1", agent: str = "Firefox") -> Client:
    client = browser(address, HTTP_USER_AGENT=agent)
    assert client.post("/accounts/login/", {"login": name, "password": PASSWORD}).status_code == 302
    return client


def ends(page: Client) -> list[str]:
    """The addresses that end a session, as the page has them."""
    return re.findall(r'action="(/settings/sessions/\d+/end)"', page.get(PAGE).text)


def is_logged_in(client: Client) -> bool:
    return client.get("/settings/keys").status_code == 200


def test_session_is_listed_and_once_ended_is_logged_out_and_its_page_opens_nothing(
    user: User,
) -> None:
    here, elsewhere = log_in(), log_in(address="192.0.2.2", agent="<b>Chrome</b>")
    text = here.get(PAGE).text
    assert [address in text for address in ("192.0.2.1", "192.0.2.2")] == [True, True]
    assert "&lt;b&gt;Chrome&lt;/b&gt;" in text
    assert text.count("this one") == 1
    token = read_browser_token(token_of(elsewhere))
    (end,) = ends(here)
    assert here.get(end).status_code == 405
    # One's own is ended by logging out.
    assert elsewhere.post(end)["Location"] == "/accounts/logout/"
    assert is_logged_in(elsewhere)
    assert here.post(end, follow=True).status_code == 200
    assert (is_logged_in(here), is_logged_in(elsewhere)) == (True, False)
    assert token is not None
    assert find_browser_caller(token.page_session) is None
    assert ControlEvent.objects.get().kind == EventKind.SESSION_ENDED
    assert ends(here) == []
    # All others end at once.
    others = [log_in(address=f"192.0.2.{number}") for number in (3, 4)]
    assert here.post(PAGE).status_code == 302
    assert [is_logged_in(each) for each in (here, *others)] == [True, False, False]
