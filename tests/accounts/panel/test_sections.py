"""The side navigation: every page of the panel is in it, and marks itself there."""

from __future__ import annotations

import re

import pytest

from tests.accounts.browser import logged_in
from tests.factories import make_account

pytestmark = pytest.mark.django_db
PAGES = {
    "/settings/keys": "API keys",
    "/settings/streams": "Open streams",
    "/settings/usage": "Usage",
    "/settings/tier": "Tier",
    "/settings/signals": "Signals",
    "/accounts/password/change/": "Password",
    "/accounts/2fa/": "Two-factor login",
    "/accounts/2fa/totp/activate/": "Two-factor login",
    "/accounts/sessions/": "Sessions",
    "/settings/events": "Events",
    "/accounts/email/": "Email",
}


@pytest.mark.parametrize(("path", "title"), PAGES.items())
def test_a_page_marks_itself_and_leads_to_the_others(path: str, title: str) -> None:
    user = make_account().user
    user.set_password("a long walk 7")
    user.save()
    client = logged_in(user)
    # As after a login a moment ago: some pages ask for the password otherwise.
    client.post("/accounts/reauthenticate/", {"password": "a long walk 7"})
    text = client.get(path).text
    navigation = text.partition('id="sections"')[2].partition("</nav>")[0]
    assert re.findall(r'aria-current="page">([^<]+)<', navigation) == [title]
    assert set(re.findall(r'<a href="[^"]+"[^>]*>([^<]+)<', navigation)) == {*PAGES.values(), "Your data"}
    assert f"<span>{title}</span>" in text.partition('id="sections"')[0]


def test_whoever_has_no_password_yet_is_on_the_page_of_passwords_too() -> None:
    text = logged_in(make_account().user).get("/accounts/password/set/").text
    assert "<span>Password</span>" in text.partition('id="sections"')[0]


def test_the_page_of_their_data_is_called_as_in_the_menu() -> None:
    assert "<h1>Your data</h1>" in logged_in(make_account().user).get("/settings/account").text
