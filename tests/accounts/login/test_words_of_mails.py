"""What stands in every mail that the server can send."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import allauth
import pytest
from allauth.account import app_settings
from allauth.account.models import EmailAddress
from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.test import Client
from pytest_django.fixtures import Settings

from accounts.login.adapters import browser_name
from accounts.login.mails import written
from accounts.models import User
from tests.accounts.login.test_mails import PASSWORD
from tests.factories import make_account, make_tiers, make_user

pytestmark = pytest.mark.django_db
CHROME = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
)
OURS = {
    f"{path.parent.relative_to(settings.BASE_DIR / 'templates')}/{path.stem}"
    for path in (settings.BASE_DIR / "templates").glob("*/email/[!_]*.txt")
}
WITH_CODES = {"account/email/login_code", "account/email/password_reset_code"}
SAID = {
    "activate_url": "https://tickwire.test/accounts/confirm-email/1/",
    "password_reset_url": "https://tickwire.test/accounts/password/reset/",
    "signup_url": "https://tickwire.test/accounts/signup/",
    "page": "https://tickwire.test/settings/signals",
    "from_email": "ada@tickwire.test",
    "to_email": "lovelace@tickwire.test",
    "what": "API key laptop: Revoked.",
    "address": "eve@tickwire.test",
    "deleted_email": "ada@tickwire.test",
    "decided": SimpleNamespace(wanted="Pro", answer="Tell us “more” & <better>."),
    "browser": "Chrome on Linux",
    "ip": "192.0.2.7",
}


def sent_by_allauth() -> set[str]:
    """The prefixes of templates that stand in its code."""
    folder = Path(allauth.__file__).parent
    code = "".join(path.read_text() for part in ("account", "mfa") for path in (folder / part).rglob("*.py"))
    return set(re.findall(r'"((?:account|mfa)/email/\w+)"', code))


def assert_friendly(mail: EmailMessage) -> None:
    words = f"{mail.subject}\n{mail.body}"
    assert "Tickwire" in mail.subject
    assert "If you did not" in words
    assert words.rstrip().endswith("\n\nTickwire")
    for wrong in ("Hello from", "example.com", "testserver!", "e-mail", "&amp;", "&lt;", "\n\n\n"):
        assert wrong not in words


def test_each_mail_of_allauth_has_words_of_ours() -> None:
    assert not app_settings.LOGIN_BY_CODE_ENABLED
    assert not app_settings.PASSWORD_RESET_BY_CODE_ENABLED
    assert len(sent_by_allauth()) > 15
    assert sent_by_allauth() - WITH_CODES <= OURS


@pytest.mark.parametrize("kind", sorted(OURS))
def test_it_names_tickwire_and_says_what_to_do_otherwise(kind: str) -> None:
    about = SAID | {"email": "ada@tickwire.test", "user": User(username="ada")}
    assert_friendly(written(kind, "ada@tickwire.test", about))


def test_links_work_for_as_long_as_the_mails_say() -> None:
    assert app_settings.EMAIL_CONFIRMATION_EXPIRE_DAYS == 3
    assert settings.PASSWORD_RESET_TIMEOUT == 3 * 86_400
    for kind in ("email_confirmation", "password_reset_key"):
        assert "three days" in render_to_string(f"account/email/{kind}.txt")


@pytest.fixture
def ada(settings: Settings) -> User:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    make_tiers()
    user = make_user("ada", PASSWORD)
    make_account(user)
    EmailAddress.objects.update_or_create(
        user=user, email="ada@tickwire.test", defaults={"verified": True, "primary": True}
    )
    return user


def change_password(client: Client) -> None:
    client.post("/accounts/login/", {"login": "ada", "password": PASSWORD})
    new = "a longer walk 8"
    client.post("/accounts/password/change/", {"oldpassword": PASSWORD, "password1": new, "password2": new})


BOB = {"username": "bob", "password1": PASSWORD, "password2": PASSWORD}
ACTS: dict[str, tuple[Callable[[Client], object], str]] = {
    "You already have": (
        lambda client: client.post("/accounts/signup/", BOB | {"email": "ada@tickwire.test"}),
        "/password/reset/",
    ),
    "There is no Tickwire account": (
        lambda client: client.post("/accounts/password/reset/", {"email": "eve@tickwire.test"}),
        "/accounts/signup/",
    ),
    "password was changed": (change_password, "Where: Chrome on Linux, address 127.0.0.1"),
}


@pytest.mark.parametrize("subject", ACTS)
@pytest.mark.usefixtures("ada")
def test_the_pages_send_it(subject: str, mailoutbox: list[EmailMessage]) -> None:
    act, words = ACTS[subject]
    act(Client(headers={"user-agent": CHROME}))
    (mail,) = mailoutbox
    assert_friendly(mail)
    assert subject in mail.subject
    assert words in mail.body


AGENTS = {
    CHROME: "Chrome on Linux",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Safari/604.1": (
        "Safari on iPhone"
    ),
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:142.0) Gecko/20100101 Firefox/142.0": "Firefox on Windows",
    "curl/8.5.0": "curl/8.5.0",
    "Mozilla/5.0": "Unknown client",
    "": "Unknown client",
}


@pytest.mark.parametrize(("agent", "name"), AGENTS.items(), ids=AGENTS.values())
def test_a_browser_is_called_as_people_call_it(agent: str, name: str) -> None:
    assert browser_name(agent) == name
