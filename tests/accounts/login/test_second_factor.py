"""Second factors: what a login asks for, what works once, and what is kept of them."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.core.mail import EmailMessage

from accounts.models import Attempt, User
from core.events.outbox import ControlEvent
from tests.factories import make_account, make_user

from .factors import ACTIVATE, PASSWORD, PERIOD_S, code_of, enrol, is_in, log_in, prove, recovery_codes

pytestmark = [pytest.mark.served, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def _long_period(settings: Any) -> None:
    settings.MFA_TOTP_PERIOD = PERIOD_S


@pytest.fixture
def ada() -> User:
    return make_account(make_user("ada", PASSWORD)).user


def test_a_code_that_was_used_is_refused(ada: User) -> None:
    code = code_of(enrol(log_in("ada")))
    client = log_in("ada")
    assert not is_in(client)
    assert not prove(client, f"{(int(code) + 1) % 1_000_000:06}")
    assert not is_in(client)
    assert prove(client, code)
    assert is_in(client)
    # It is remembered where every process looks.
    assert Attempt.objects.filter(cache_key__contains="totp.used").exists()
    thief = log_in("ada")
    assert not prove(thief, code)
    assert not is_in(thief)


def test_a_recovery_code_works_once(ada: User) -> None:
    client = log_in("ada")
    enrol(client)
    code, other = recovery_codes(client)[:2]
    assert prove(log_in("ada"), code)
    assert not prove(log_in("ada"), code)
    assert prove(log_in("ada"), other)
    assert code not in recovery_codes(client)


def test_guessing_is_stopped_after_a_few_attempts(ada: User) -> None:
    secret = enrol(log_in("ada"))
    client = log_in("ada")
    for _ in range(10):
        prove(client, "wrong")
    assert not prove(client, code_of(secret))


def test_secrets_are_not_readable_in_the_database_or_by_another_pepper(ada: User, settings: Any) -> None:
    client = log_in("ada")
    secret = enrol(client)
    kept = [str(factor.data) for factor in Authenticator.objects.all()]
    assert len(kept) == 2
    assert not any(secret in data for data in kept)
    settings.KEY_PEPPER = "another"
    assert not prove(log_in("ada"), code_of(secret))


def test_the_password_alone_does_not_take_the_factor_away(ada: User) -> None:
    old = log_in("ada")
    secret = enrol(log_in("ada"))
    assert "/2fa/reauthenticate/" in old.get("/accounts/2fa/totp/deactivate/", follow=True).wsgi_request.path
    old.post("/accounts/reauthenticate/", {"password": PASSWORD})
    old.post("/accounts/2fa/totp/deactivate/")
    assert Authenticator.objects.filter(type="totp").exists()
    old.post("/accounts/2fa/reauthenticate/", {"code": code_of(secret)})
    old.post("/accounts/2fa/totp/deactivate/")
    assert not Authenticator.objects.exists()


def test_an_address_that_is_not_confirmed_must_be_in_production(ada: User, settings: Any) -> None:
    settings.MFA_ALLOW_UNVERIFIED_EMAIL = False
    EmailAddress.objects.create(user=ada, email="ada@example.com", primary=True)
    assert "Confirm your email address first" in log_in("ada").get(ACTIVATE, follow=True).text


@pytest.mark.django_db(transaction=True)
def test_a_new_factor_is_told_by_mail_and_among_the_events(ada: User, mailoutbox: list[EmailMessage]) -> None:
    client = log_in("ada")
    enrol(client)
    assert [mail.to for mail in mailoutbox] == [["ada@example.com"]]
    page = client.get("/settings/events").text
    assert "An authenticator app was added." in page
    assert "Recovery codes were added." in page


@pytest.mark.django_db(transaction=True)
def test_a_factor_is_added_though_the_mail_server_is_away(ada: User, settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    client = log_in("ada")
    enrol(client)
    assert len(recovery_codes(client)) == 10


def test_a_recovery_code_that_was_used_is_told_by_mail_and_among_the_events(
    ada: User, mailoutbox: list[EmailMessage]
) -> None:
    client = log_in("ada")
    secret = enrol(client)
    codes = recovery_codes(client)
    mailoutbox.clear()
    assert prove(log_in("ada"), code_of(secret))
    assert mailoutbox == []

    assert prove(log_in("ada"), codes[0])

    (mail,) = mailoutbox
    assert mail.to == ["ada@example.com"]
    assert mail.subject == "A recovery code of your Tickwire account was used"
    assert "9 are left." in mail.body
    for code in codes[1:]:
        prove(log_in("ada"), code)
    assert "None is left: create new ones" in mailoutbox[-1].body
    assert client.get("/settings/events").text.count("A recovery code was used.") == 10


@pytest.mark.parametrize("path", ["recovery-codes/generate/", "totp/activate/"])
def test_factors_are_changed_so_many_times_and_then_later(ada: User, path: str) -> None:
    client = log_in("ada")
    enrol(client)
    if path == "totp/activate/":
        client.post("/accounts/2fa/totp/deactivate/")
    before = ControlEvent.objects.count()
    answers = [client.post(f"/accounts/2fa/{path}", {"code": "000000"}).status_code for _ in range(30)]
    assert answers[-5:] == [429] * 5
    assert answers[0] in (200, 302)
    assert ControlEvent.objects.count() - before < 20
    assert client.get("/accounts/2fa/").status_code == 200
    make_account(make_user("bob", PASSWORD))
    assert enrol(log_in("bob"))
