"""Second factors in Chromium, with a virtual authenticator in the place of a phone or security key."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounts.login.adapters import COOKIE
from tests.accounts.login.factors import PASSWORD, PERIOD_S, code_of
from tests.browser.conftest import OpenPage
from tests.browser.looks import violations
from tests.client import Server
from tests.factories import make_account, make_user

AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def people(server: Server, settings: Any) -> None:
    """Before the browser: while Playwright runs, this thread may not use the ORM."""
    settings.MFA_TOTP_PERIOD = PERIOD_S
    make_account(make_user("ada", PASSWORD))
    make_user("boss", PASSWORD, is_staff=True, is_superuser=True)


def by_name(server: Server) -> str:
    """Browsers keep passkeys for names only, not for addresses."""
    return server.url.replace("127.0.0.1", "localhost")


def plug_in(page: Page) -> None:
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    session.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})


def log_in(page: Page, name: str, password: str = PASSWORD) -> None:
    page.get_by_label("Username or email").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in", exact=True).click()


def log_out(page: Page) -> None:
    page.locator("summary[aria-label^=Account]").click()
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/accounts/login/")


def confirm(page: Page) -> None:
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()


def set_up_app(page: Page) -> str:
    expect(page.get_by_role("img", name="QR code")).to_be_visible()
    secret = page.locator(".secret code").inner_text()
    assert re.fullmatch(r"[A-Z2-7]{32}", secret)
    assert {len(part) for part in page.locator(".secret code span").all_inner_texts()} == {4}
    page.get_by_label("Code", exact=True).fill(code_of(secret))
    page.get_by_role("button", name="Turn it on").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    return secret


@pytest.mark.also_on("firefox")
def test_app_is_set_up_and_asked_for_at_the_next_login(people: None, open_page: OpenPage) -> None:
    page = open_page("/accounts/login/")
    log_in(page, "ada")
    page.get_by_role("link", name="Two-factor").click()
    page.get_by_role("link", name="Set up an app").click()
    confirm(page)
    secret = set_up_app(page)
    page.get_by_role("button", name="Copy the codes").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    codes = page.locator("#codes").inner_text().split()
    assert len(codes) == 10

    log_out(page)
    log_in(page, "ada")
    page.get_by_label("Code").fill("000000")
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_text("The code is wrong, too old or was used before.")).to_be_visible()
    page.get_by_label("Code").fill(code_of(secret))
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("heading", name="API keys")).to_be_visible()


def add_passkey(page: Page) -> None:
    page.get_by_role("link", name="Two-factor").click()
    page.get_by_role("link", name="Add a passkey").click()
    confirm(page)
    page.get_by_role("textbox", name="Name").fill("phone")
    # Its script, which asks the device, comes after the form.
    page.wait_for_load_state()
    page.get_by_role("textbox", name="Name").press("Enter")
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()


def test_passkey_is_added_and_logs_in_alone(people: None, server: Server, open_page: OpenPage) -> None:
    page = open_page("/accounts/login/", address=by_name(server))
    plug_in(page)
    log_in(page, "ada")
    add_passkey(page)
    page.get_by_role("link", name="Two-factor").click()
    page.get_by_role("link", name="Manage them").click()
    expect(page.get_by_role("heading", name="phone")).to_contain_text("logs in without a password")

    log_out(page)
    page.get_by_role("button", name="Log in with a passkey").click()
    expect(page.get_by_role("heading", name="API keys")).to_be_visible()
    log_out(page)
    log_in(page, "ada")
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("heading", name="API keys")).to_be_visible()


def test_passkey_opens_an_account_whose_password_is_locked(
    people: None, server: Server, settings: Any, open_page: OpenPage
) -> None:
    # A hundred would take long; fewer than lock an address.
    settings.ACCOUNT_RATE_LIMITS = settings.ACCOUNT_RATE_LIMITS | {"login_failed_of_account": "3/h/key"}
    page = open_page("/accounts/login/", address=by_name(server))
    plug_in(page)
    log_in(page, "ada")
    add_passkey(page)
    log_out(page)
    # A device on which somebody logged in before opens it, too.
    page.context.clear_cookies(name=COOKIE)
    for _ in range(3):
        log_in(page, "ada", "wrong")
        expect(page.get_by_text("and the password do not match")).to_be_visible()
    log_in(page, "ada")
    expect(page.get_by_text("let us mail you a link")).to_be_visible()
    page.get_by_role("button", name="Log in with a passkey").click()
    expect(page.get_by_role("heading", name="API keys")).to_be_visible()


def test_what_hinders_a_passkey_is_said(people: None, open_page: OpenPage) -> None:
    page = open_page("/accounts/login/")
    page.get_by_role("button", name="Log in with a passkey").click()
    expect(page.get_by_role("alert")).to_contain_text("Open this page by its name, not at 127.0.0.1.")


def test_staff_are_led_to_enrol_and_then_let_in(people: None, open_page: OpenPage) -> None:
    page = open_page("/admin/", viewport={"width": 360, "height": 740})
    log_in(page, "boss")
    expect(page.get_by_role("heading", name="A second factor, please")).to_be_visible()
    page.get_by_role("link", name="Set up an authenticator app").click()
    confirm(page)
    assert violations(page) == []
    set_up_app(page)
    page.get_by_role("link", name="Continue to the back office").click()
    expect(page.get_by_text("Needs attention")).to_be_visible()
