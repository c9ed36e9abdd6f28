"""/pricing says what tiers allow; /terms and /privacy are for staff to write; robots.txt; link previews."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import strip_tags

from accounts.models import Tier, TierRequest, User
from accounts.own_data import account_data
from pages.models import SiteText
from tests.accounts.back_office.office import Office, change, text_of
from tests.factories import make_account, make_tiers, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _tiers() -> None:
    make_tiers()


def words(client: Client, path: str) -> str:
    return " ".join(strip_tags(client.get(path).content.decode().replace("<", " <")).split())


def test_limits_are_those_that_hold_and_prices_those_of_staff(client: Client) -> None:
    Tier.objects.filter(name="pro").update(requests_per_minute=12_345, price="$49 a month")
    said = words(client, "/pricing")
    assert "Pro $49 a month Requests a minute 12,345" in said
    assert "Free No charge Requests a minute 60" in said
    assert "Premium On request Requests a minute" in said


STEPS = {
    "": ["Sign up", "Sign up, then ask for Pro", "Sign up, then ask for Premium"],
    "free": ["See your usage", "Ask for Pro", "Ask for Premium"],
    "pro": ["Move down to Free", "See your usage", "Ask for Premium"],
    "premium": ["Move down to Free", "Move down to Pro", "See your usage"],
}


@pytest.mark.parametrize("held", STEPS)
def test_each_tier_has_the_step_that_leads_to_it(client: Client, held: str) -> None:
    if held:
        client.force_login(make_account(make_user("ada"), tier=Tier.objects.get(name=held)).user)
    assert words(client, "/pricing").count("Your tier") == bool(held)
    page = client.get("/pricing").content.decode()
    buttons = re.findall(r'<a class="button[^"]*" href="([^"]+)">([^<]+)</a>', page)
    assert [step for _, step in buttons] == STEPS[held]
    for address, step in buttons:
        if address.startswith("/settings/tier"):
            name = step.rsplit(" ", 1)[1]
            assert f"selected>{name}</option>" in client.get(address).content.decode()


def test_tier_that_was_asked_for_says_so_until_staff_have_answered(client: Client) -> None:
    account = make_account(make_user("ada"), tier=Tier.objects.get(name="free"))
    asked = TierRequest.objects.create(account=account, wanted=Tier.objects.get(name="pro"))
    client.force_login(account.user)
    said = words(client, "/pricing")
    assert "Requested: see your request" in said
    assert "Ask for Pro" not in said
    TierRequest.objects.filter(pk=asked.pk).update(
        state="declined", answer="Not yet.", decided_at=timezone.now()
    )
    assert "Ask for Pro" in words(client, "/pricing")


def test_user_without_an_account_is_on_free(client: Client) -> None:
    client.force_login(make_user("ada"))
    assert "Free Your tier" in words(client, "/pricing")


@pytest.mark.parametrize(("path", "title"), [("/terms", "Terms of use"), ("/privacy", "Privacy")])
def test_texts_say_whether_staff_wrote_them(client: Client, path: str, title: str) -> None:
    assert title in words(client, path)
    assert "has not changed it" in words(client, path)

    text = SiteText.objects.get(name=path[1:])
    office = Office(User.objects.create_superuser("root"))
    saved = office.post(change(text), body="# Ours\n\nBe <b>kind</b>.")
    assert saved.status_code == 302, text_of(saved)

    said = client.get(path).content.decode()
    assert "<h1" in said
    assert "Be &lt;b&gt;kind&lt;/b&gt;." in said
    assert re.search(r"Last changed on \d{1,2} [A-Z][a-z]{2} \d{4}\.", said)


# In which words the page speaks of each part of the file that people download.
SPOKEN_OF = {
    "person": "Your account",
    "email_addresses": "email addresses",
    "second_factors": "of each passkey, its public key and the name that you gave it",
    "sessions": "Your sessions",
    "page_sessions": "Your sessions",
    "account": "Your account",
    "rights": "Your account",
    "keys": "Your API keys",
    "ingest_keys": "and ingest keys",
    "price_rights": "When you could last make prices",
    "usage": "Your usage",
    "ai_usage": "AI calls",
    "tier_requests": "requests for another tier",
    "publisher_requests": "to publish signals, each with your reason, our answer",
    "open_streams": "Your open streams",
    "events": "changes of tier, password or email addresses",
    "signals": "Signals that you publish",
    **dict.fromkeys(
        ("events_by", "log_about", "log_by", "tier_decisions", "publisher_decisions"), "your work as staff"
    ),
    "news_scores": "scores that you gave to news",
}


def test_privacy_speaks_of_all_that_can_be_downloaded(client: Client) -> None:
    said = words(client, "/privacy")
    assert set(account_data.sections) == set(SPOKEN_OF)
    assert [name for name, spoken in SPOKEN_OF.items() if spoken not in said] == []


def test_search_engines_are_kept_from_what_is_no_document(client: Client) -> None:
    answer = client.get("/robots.txt")
    assert answer["Content-Type"].startswith("text/plain")
    lines = answer.content.decode().splitlines()
    assert lines[0] == "User-agent: *"
    assert {"Disallow: /admin/", "Disallow: /settings/", "Disallow: /api/"} <= set(lines)
    assert not {"Disallow: /", "Disallow: /docs"} & set(lines)


def test_emptied_text_is_the_first_one_again() -> None:
    text = SiteText.objects.get(name="terms")
    first = text.body
    office = Office(User.objects.create_superuser("root"))
    for body in ("# Ours", ""):
        office.post(change(text), body=body)
    text.refresh_from_db()
    assert (text.body, text.changed_at) == (first, None)
