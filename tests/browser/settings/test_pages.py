"""The settings panel in Chromium: a tier is asked for; every page in both themes, narrow and wide."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.keys.issuing import issue_key
from accounts.limits.tiers import ask_for_tier, decline_request
from accounts.models import Tier, TierRequest, Usage
from tests.browser.conftest import OpenPage
from tests.browser.looks import faults
from tests.client import Server
from tests.factories import make_account, make_user
from tests.staff import staff_client

PAGES = {
    "keys": "/settings/keys",
    "tier": "/settings/tier",
    "usage": "/settings/usage",
    "streams": "/settings/streams",
    "account": "/settings/account",
    "signals": "/settings/signals",
    "sessions": "/accounts/sessions/",
    "events": "/settings/events",
    "email": "/accounts/email/",
    "password": "/accounts/password/change/",
    "two-factor": "/accounts/2fa/",
    "app-off": "/accounts/2fa/totp/deactivate/",
    "passkeys": "/accounts/2fa/webauthn/",
    "passkey-add": "/accounts/2fa/webauthn/add/",
    "codes": "/accounts/2fa/recovery-codes/",
    "codes-new": "/accounts/2fa/recovery-codes/generate/",
    "confirm": "/accounts/2fa/reauthenticate/",
    "admin": "/admin/",
}
# unfold's frame has no main landmark, so that nothing is inside one.
UNFOLDS = ("landmark-one-main:", "region:")
ENTRANCE = {
    "login": "/accounts/login/",
    "signup": "/accounts/signup/",
    "reset": "/accounts/password/reset/",
}


@pytest.fixture
def session(server: Server) -> str:
    """Somebody whose pages have something on them."""
    user = make_user("ada", "a long walk 7", is_staff=True, is_superuser=True)
    account = make_account(user)
    issue_key(account, "laptop", by="ada")
    decline_request(ask(account, "premium"), "Try Pro first, and tell us how it goes.", by="boss")
    ask(account, "pro")
    for minute in range(90):
        at = timezone.now().replace(second=0, microsecond=0) - timedelta(minutes=3 * minute)
        Usage.objects.create(account=account, span="minute", starts_at=at, requests=minute % 60)
    for day in range(30):
        at = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=day)
        Usage.objects.create(account=account, span="day", starts_at=at, requests=900 + 37 * day, streams=day)
    client = staff_client(user)
    client.get("/accounts/2fa/")
    Authenticator.objects.create(user=user, type="recovery_codes", data=seed())
    return str(client.cookies["sessionid"].value)


def ask(account: Any, tier: str) -> TierRequest:
    wanted = Tier.objects.get(name=tier)
    return ask_for_tier(account, wanted, "A bot that trades gold needs more streams.", by="ada")


def seed() -> dict[str, Any]:
    from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
    from allauth.mfa.utils import encrypt

    return {"seed": encrypt(RecoveryCodes.generate_seed()), "used_mask": 0}


def test_a_tier_is_asked_for_and_the_request_withdrawn(
    server: Server, customer: str, open_page: OpenPage
) -> None:
    page = with_session(open_page("/healthz"), server, customer)
    page.goto("/settings/keys")
    page.get_by_role("link", name="Tier").click()
    page.get_by_label("Tier", exact=True).select_option("Premium")
    page.get_by_label("Why").fill("A bot that trades gold.")
    page.get_by_role("button", name="Send the request").click()
    expect(page.get_by_role("heading", name="You asked for Premium")).to_contain_text("waiting")
    page.get_by_role("button", name="Withdraw it").click()
    expect(page.get_by_text("Your request has been withdrawn.")).to_be_visible()
    expect(page.get_by_role("button", name="Send the request")).to_be_visible()


@pytest.fixture
def customer(server: Server) -> str:
    return str(staff_client(make_account().user).cookies["sessionid"].value)


def with_session(page: Page, server: Server, session: str) -> Page:
    page.context.add_cookies([{"name": "sessionid", "value": session, "url": server.url}])
    return page


def test_pages_fit_every_window_and_break_no_rule_of_access(
    server: Server, session: str, open_page: OpenPage
) -> None:
    page = open_page("/healthz")
    found = {name: look_at(page, name, path) for name, path in ENTRANCE.items()}
    with_session(page, server, session)
    found |= {name: look_at(page, name, path) for name, path in PAGES.items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def look_at(page: Page, name: str, path: str) -> list[str]:
    page.goto(path)
    assert page.url.endswith(path)
    page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
    found = faults(page)
    return [each for each in found if name != "admin" or not each.startswith(UNFOLDS)]
