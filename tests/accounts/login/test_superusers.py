"""Who was made on the command line gets into the back office in production, and nobody else past the mail."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core.mail import EmailMessage
from django.core.management import call_command
from pytest_django.fixtures import Settings

from accounts.models import User
from tests.factories import make_user

from .factors import PASSWORD, PERIOD_S, code_of, enrol, is_in, log_in, prove

pytestmark = pytest.mark.django_db
BEHIND_TLS: dict[str, Any] = {"headers": {"x-forwarded-proto": "https"}}


@pytest.fixture(autouse=True)
def _production(settings: Settings) -> None:
    settings.PRODUCTION = True
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.MFA_ALLOW_UNVERIFIED_EMAIL = False
    settings.SECURE_SSL_REDIRECT = settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    settings.MFA_TOTP_PERIOD = PERIOD_S


def create(monkeypatch: pytest.MonkeyPatch, email: str) -> User:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", PASSWORD)
    call_command("createsuperuser", username="boss", email=email, interactive=False, verbosity=0)
    return User.objects.get(username="boss")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("email", ["boss@example.com", ""], ids=["with an address", "without one"])
def test_superuser_of_the_command_line_gets_into_the_back_office(
    monkeypatch: pytest.MonkeyPatch, mailoutbox: list[EmailMessage], email: str
) -> None:
    boss = create(monkeypatch, email)
    if email:
        # The version before asked for it to be confirmed.
        EmailAddress.objects.create(user=boss, email=email, primary=True, verified=False)
    assert not is_in(log_in("boss", "another", **BEHIND_TLS))
    client = log_in("boss", **BEHIND_TLS)
    assert is_in(client)
    assert mailoutbox == []
    # First a second factor, which needs no mail either.
    asked = client.get("/admin/", follow=True)
    assert asked.status_code == 403
    assert "A second factor, please" in asked.text
    secret = enrol(client)
    assert client.get("/admin/").status_code == 200
    # And the next time with both.
    again = log_in("boss", **BEHIND_TLS)
    assert not is_in(again)
    assert prove(again, code_of(secret))
    assert again.get("/admin/").status_code == 200
    verified = EmailAddress.objects.filter(user=boss, verified=True)
    assert list(verified.values_list("email", flat=True)) == ([email] if email else [])


def test_address_that_somebody_else_has_confirmed_stays_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    ada = make_user("ada", PASSWORD)
    theirs = EmailAddress.objects.create(user=ada, email="boss@example.com", primary=True, verified=True)
    boss = create(monkeypatch, "boss@example.com")
    assert is_in(log_in("boss", **BEHIND_TLS))
    theirs.refresh_from_db()
    assert theirs.verified
    assert not EmailAddress.objects.filter(user=boss, verified=True).exists()


def test_everybody_else_is_still_asked(mailoutbox: list[EmailMessage]) -> None:
    for name, rights in (("eve", {}), ("staff", {"is_staff": True})):
        make_user(name, PASSWORD, email=f"{name}@example.com", **rights)
        assert not is_in(log_in(name, **BEHIND_TLS))
    assert [mail.to for mail in mailoutbox] == [["eve@example.com"], ["staff@example.com"]]
