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


def test_a_page_marks_itself_and_leads_to_the_others() -> None:
    user = make_account().user
    user.set_password("a long walk 7")
    user.save()
    client = logged_in(user)
    # As after a login a moment ago: some pages ask for the password otherwise.
    client.post("/accounts/reauthenticate/", {"password": "a long walk 7"})
    assert client.get("/settings")["Location"] == client.get("/settings/")["Location"] == "/settings/keys"
    for path, title in PAGES.items():
        text = client.get(path).text
        navigation = text.partition('id="sections"')[2].partition("</nav>")[0]
        assert re.findall(r'aria-current="page">([^<]+)<', navigation) == [title]
        assert set(re.findall(r'<a href="[^"]+"[^>]*>([^<]+)<', navigation)) == {*PAGES.values(), "Your data"}
        assert f"<span>{title}</span>" in text.partition('id="sections"')[0]
