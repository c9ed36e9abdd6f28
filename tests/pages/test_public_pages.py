"""Who gets the terminal, what other sites show of a link to one of our pages, and where the operator is
named."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from core.contract.openapi import complete
from pages.terminal import kept_watchlist
from status.models import Incident
from tests.accounts.browser import logged_in
from tests.factories import (
    make_account,
    make_calendar,
    make_instrument,
    make_news,
    make_signal,
    make_user,
    put_quote,
)
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db


@pytest.fixture
def _no_demo(settings: Settings) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = False


def shows_terminal(client: Client, path: str) -> bool:
    names = [template.name for template in client.get(path).templates]
    assert names
    return str(names[0]).startswith("terminal/")


@pytest.mark.usefixtures("_no_demo")
def test_stranger_gets_the_front_page_and_must_log_in_for_the_terminal(client: Client) -> None:
    assert client.get("/").status_code == 200
    assert not shows_terminal(client, "/")
    answer = client.get("/terminal?symbol=EURUSD")
    assert answer.status_code == 302
    assert answer["Location"] == "/accounts/login/?next=/terminal%3Fsymbol%3DEURUSD"


@pytest.mark.usefixtures("_no_demo")
@pytest.mark.parametrize("path", ["/", "/terminal", "/terminal/"])
def test_terminal_stands_at_both_places_for_who_is_logged_in(client: Client, path: str) -> None:
    client.force_login(get_user_model().objects.create_user("trader"))
    assert shows_terminal(client, path)


@pytest.mark.parametrize("path", ["/", "/terminal"])
def test_demo_shows_strangers_the_terminal(client: Client, settings: Settings, path: str) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    assert shows_terminal(client, path)


@pytest.mark.usefixtures("_no_demo")
@pytest.mark.parametrize("is_public", [True, False])
def test_front_page_has_live_prices_only_where_they_may_be_public(
    client: Client, settings: Settings, is_public: bool
) -> None:
    settings.PUBLIC_TERMINAL = is_public
    make_instrument("EURUSD")
    put_quote("EURUSD", 1.0841, 1.08424)
    page = client.get("/").content.decode()
    assert ('data-symbol="EURUSD"' in page) is is_public
    assert ("1.0841" in page) is is_public
    assert ("$TICKWIRE_KEY" in page) is not is_public


def shown_at(path: str) -> str:
    return Client().get(path, headers={"accept": "text/html"}).text


def preview(shown: str) -> dict[str, str]:
    return {
        name: unescape(text) for name, text in re.findall(r'property="og:(\w+)" content="([^"]*)"', shown)
    }


def test_publisher_and_signal_have_previews_of_their_own() -> None:
    signal = make_signal(user=make_user("anna"))
    for path, title, about in (
        ("/publishers/anna", "anna, publisher", "The results of anna: every closed signal counts"),
        (f"/signals/{signal.pk}", "Buy EURUSD by anna", "A trade signal with the ticks"),
    ):
        found = preview(shown_at(f"{path}?page=1"))
        assert (found["title"], found["url"]) == (title, f"http://testserver{path}")
        assert found["description"].startswith(about)
    # The page of a failure has none.
    assert preview(shown_at("/publishers/nobody")) == {}


@pytest.mark.parametrize("path", ["/about", "/pricing", "/publishers", "/docs", "/status", "/ledger"])
def test_every_public_page_says_what_its_head_says(path: str) -> None:
    # Read once: the next answer may be about another state of the service.
    shown = shown_at(path)
    title, about = (
        re.search(pattern, shown, re.DOTALL)
        for pattern in (r"<title>(.+?) · Tickwire</title>", r'name="description" content="([^"]+)"')
    )
    assert title
    assert about
    found = preview(shown)
    assert (found["title"], found["description"]) == (unescape(title[1]), unescape(about[1]))
    assert found["url"] == f"http://testserver{path}"


def test_name_is_text_in_the_preview() -> None:
    make_signal(user=make_user('<b>"x&y'))
    path = "/publishers/%3Cb%3E%22x&y"
    shown = shown_at(path)
    assert preview(shown)["title"] == '<b>"x&y, publisher'
    assert preview(shown)["url"] == "http://testserver/publishers/%3Cb%3E%22x&y"
    assert "<b>" not in shown


ADDRESS = "support@tickwire.example"
LINK = f'href="mailto:{ADDRESS}"'


@pytest.mark.parametrize("path", ["/about", "/terms", "/accounts/login/"])
def test_pages_name_it_in_their_foot_and_that_of_a_failure_says_whom_to_tell(
    client: Client, settings: Settings, path: str
) -> None:
    assert "mailto:" not in client.get(path).text
    assert "write to" not in render_to_string("500.html")
    settings.CONTACT_EMAIL = ADDRESS
    assert f"<a {LINK}>Contact</a>" in client.get(path).text
    assert f"If it fails again, write to <a {LINK}>{ADDRESS}</a>." in render_to_string("500.html")


@pytest.mark.parametrize(("address", "named"), [("", "the operator of this service"), (ADDRESS, ADDRESS)])
def test_mail_about_a_deleted_account_says_whom_to_ask(
    settings: Settings, mailoutbox: list[EmailMessage], address: str, named: str
) -> None:
    settings.CONTACT_EMAIL = address
    account = make_account()
    account.user.email = "ada@example.com"
    account.user.save()
    logged_in(account.user).post("/settings/account", {"name": account.user.get_username()})
    (mail,) = mailoutbox
    assert f"If you did not ask for this, write to {named}." in str(mail.body)


def test_openapi_document_names_it(settings: Settings) -> None:
    parts = ("openapi", "servers", "tags", "paths")
    assert "contact" not in complete({name: {} for name in parts} | {"info": {}, "components": {}})["info"]
    settings.CONTACT_EMAIL = ADDRESS
    made = complete({name: {} for name in parts} | {"info": {}, "components": {}})
    assert made["info"]["contact"] == {"email": ADDRESS}


def test_security_text_names_it_and_is_good_for_a_while(client: Client, settings: Settings) -> None:
    assert client.get("/.well-known/security.txt").status_code == 404
    settings.CONTACT_EMAIL = ADDRESS
    answer = client.get("/.well-known/security.txt")
    fields = dict(line.split(": ", 1) for line in answer.text.splitlines())
    assert fields["Contact"] == f"mailto:{ADDRESS}"
    assert datetime.fromisoformat(fields["Expires"]) > datetime.now(UTC) + timedelta(days=7)
    assert answer["Content-Type"].startswith("text/plain")


PATH = "/terminal/watchlist.json"


def test_stranger_is_refused_unless_the_terminal_is_public(client: Client, settings: Any) -> None:
    settings.PUBLIC_TERMINAL = False
    assert client.get(PATH).status_code == 403


def test_rows_are_told_by_symbol(client: Client, settings: Any) -> None:
    settings.PUBLIC_TERMINAL = True
    make_instrument("EURUSD")
    make_instrument("GBPUSD", calendar=make_calendar("never", "Mon 00:00-00:01", holidays=""))
    put_quote("EURUSD", 1.0841)
    answer = client.get(PATH)
    assert answer["Cache-Control"].startswith("max-age=0")
    told = answer.json()["instruments"]
    assert (told["EURUSD"]["state"], told["EURUSD"]["bid"], told["EURUSD"]["opensMs"]) == (
        "open",
        1.0841,
        None,
    )
    assert told["EURUSD"]["group"] == told["GBPUSD"]["group"] == "Forex"


def test_rows_of_the_terminal_are_drawn_once_for_all(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PUBLIC_TERMINAL = True
    make_instrument("EURUSD")
    monkeypatch.setattr("pages.terminal.FRESH_S_OF_ROW", PATIENCE_S)

    client.get("/terminal")
    put_quote("EURUSD", 1.0777)
    assert "1.0777" not in client.get("/terminal").text
    kept_watchlist.clear()
    assert "1.0777" in client.get("/terminal").text


def test_open_incidents_are_told_and_ended_ones_are_not(client: Client, settings: Any) -> None:
    settings.PUBLIC_TERMINAL = False
    client.force_login(get_user_model().objects.create_user("trader"))
    Incident.objects.create(title="Over", impact="major", ended_at=timezone.now() + timedelta(hours=1))
    Incident.objects.create(title="Late quotes", impact="minor")
    assert client.get(PATH).json()["incidents"] == [
        {"title": "Late quotes", "impact": "minor", "kind": "degraded"}
    ]


def test_unknown_symbol_of_the_address_is_escaped_and_short(client: Client, settings: Any) -> None:
    settings.PUBLIC_TERMINAL = True
    make_instrument("EURUSD")
    page = client.get("/terminal?symbol=<script>xxxxxxxxxxxxxxxxxxxxxxxx").content.decode()
    assert "<strong>&lt;SCRIPT&gt;XXXXXXXXXXXX</strong>" in page
    for known in ("eurusd", "EUR/USD"):
        assert "There is no instrument" not in client.get("/terminal", {"symbol": known}).content.decode()


STORY = re.compile(r'<li class="story waiting">\s*<p class="title">(.*?)</p>', re.DOTALL)


def test_headlines_of_published_news_are_in_the_page(client: Client, settings: Settings) -> None:
    """They are read before a script has asked for news."""
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    make_instrument("EURUSD")
    page = client.get("/terminal").content.decode()
    assert not STORY.findall(page)
    # Something is seen to be on its way.
    assert '<li class="waiting">' in page.partition('id="news"')[2]
    make_news("Gold <steadies>", url="https://example.com/gold")
    make_news("Dollar slips")
    make_news("Not yet", status="draft")
    make_news("Odd address", url="javascript:alert(1)")
    page = client.get("/terminal").content.decode()
    assert STORY.findall(page) == [
        "Odd address",
        "Dollar slips",
        '<a href="https://example.com/gold" rel="noopener" target="_blank">Gold &lt;steadies&gt;</a>',
    ]
