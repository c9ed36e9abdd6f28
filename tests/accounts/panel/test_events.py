"""/settings/events"""

from __future__ import annotations

import re

import pytest
from django.test import Client

from accounts.keys.issuing import issue_key, revoke_key, roll_key
from accounts.limits.tiers import change_tier, save_tier, save_user_access
from accounts.models import Account, ApiKey, Tier
from accounts.panel import account as account_pages
from accounts.rights import publishing_right
from tests.accounts.browser import logged_in
from tests.factories import make_account, make_user

pytestmark = pytest.mark.django_db
PAGE = "/settings/events"


@pytest.fixture
def account() -> Account:
    return make_account(make_user("<b>ada</b>"))


def told(page: Client) -> list[str]:
    """Each event in words, with who did it: staff without a name."""
    rows = re.findall(r"<li>(.*?) <span class=\"hint\">(?:By (.*?), )?<time", page.get(PAGE).text)
    return [f"{words} {by}".strip() for words, by in rows]


def test_what_happened_to_keys_and_tier_is_told_newest_first(page: Client, account: Account) -> None:
    key, _ = issue_key(account, "laptop", by="<b>ada</b>")
    successor, _ = roll_key(key, overlap_hours=1, by="<b>ada</b>")
    revoke_key(ApiKey.objects.get(pk=successor.pk), by="grace")
    change_tier(account, Tier.objects.get(name="premium"), by="grace")
    save_user_access(account, by="grace")
    account.user.set_password("a longer walk 8")
    account.user.save()
    for is_held in (True, False):
        publishing_right.switch(account.user, is_held=is_held, by="grace")
    assert told(logged_in(account.user)) == [
        "The right to publish signals was withdrawn. staff",
        "The right to publish signals was granted. staff",
        "The password changed. &lt;b&gt;ada&lt;/b&gt;",
        "The account was unlocked. staff",
        "The tier changed to Premium. staff",
        f"Key {successor.prefix}… was revoked. staff",
        f"Key {key.prefix}… was rolled: another one replaces it. &lt;b&gt;ada&lt;/b&gt;",
        f"Key {successor.prefix}… was issued. &lt;b&gt;ada&lt;/b&gt;",
        f"Key {key.prefix}… was issued. &lt;b&gt;ada&lt;/b&gt;",
    ]


def test_nobody_is_told_of_others_or_of_all(page: Client) -> None:
    issue_key(make_account(), "theirs", by="eve")
    save_tier(Tier.objects.get(name="pro"), by="grace")
    assert told(page) == []
    assert "Nothing has happened yet" in page.get(PAGE).text


def test_page_ends_somewhere_and_says_so(
    page: Client, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        issue_key(account, "laptop", by="ada")
    monkeypatch.setattr(account_pages, "SHOWN", 2)
    assert len(told(page)) == 2
    assert "Older ones are not listed." in page.get(PAGE).text
