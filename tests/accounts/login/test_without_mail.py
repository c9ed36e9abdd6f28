"""With EMAIL_URL=dummymail:// nothing promises a mail, and whoever has an account gets in."""

from __future__ import annotations

from pathlib import Path

import pytest
from allauth.account.models import EmailAddress
from django.test import Client
from pytest_django.fixtures import Settings

from tests.factories import make_user
from tests.programs.commands import manage

from .factors import PASSWORD, enrol, is_in, log_in

pytestmark = pytest.mark.django_db
CLOSED = ("signup/", "email/", "confirm-email/", "password/reset/", "password/reset/done/")
SHOW = "from django.conf import settings as s; print(s.MAILS_ARE_SENT, s.ACCOUNT_EMAIL_VERIFICATION)"


@pytest.fixture
def _no_mail(settings: Settings) -> None:
    """As `dummymail://` makes them; see the last test."""
    settings.MAILS_ARE_SENT = settings.ACCOUNT_EMAIL_NOTIFICATIONS = False
    settings.ACCOUNT_EMAIL_VERIFICATION = "none"
    settings.MFA_ALLOW_UNVERIFIED_EMAIL = True


@pytest.mark.usefixtures("_no_mail")
@pytest.mark.parametrize("path", CLOSED)
def test_page_that_needs_mail_is_closed_and_says_so(path: str, settings: Settings) -> None:
    client = Client()
    for answer in (
        client.get(f"/accounts/{path}"),
        client.post(f"/accounts/{path}", {"email": "a@b.example"}),
    ):
        assert answer.status_code == 403
        assert "This service sends no email" in answer.text
    assert not EmailAddress.objects.exists()
    settings.MAILS_ARE_SENT = True
    assert client.get(f"/accounts/{path}").status_code != 403


@pytest.mark.usefixtures("_no_mail")
def test_user_whom_staff_made_logs_in_and_sets_up_a_factor() -> None:
    ada = make_user("ada", PASSWORD, email="ada@example.com")
    EmailAddress.objects.create(user=ada, email="ada@example.com", primary=True)
    client = log_in("ada")
    assert is_in(client)
    assert enrol(client)


@pytest.mark.parametrize(
    ("url", "shown"), [("dummymail://", "False none"), ("smtp+tls://127.0.0.1:1", "True mandatory")]
)
def test_address_of_the_mail_server_says_which(tmp_path: Path, url: str, shown: str) -> None:
    production = {
        "PRODUCTION": "1",
        "SECRET_KEY": "Zq8vT3mXw1LrC9dKfP0yHn5sGbJ7uEaU2iVo4tRk",
        "KEY_PEPPER": "pL0wQx7NzB3cYh8GsM5tVd2JfRk9aUe6TiXo1HvC",
        "DATABASE_URL": "postgresql://127.0.0.1:1/none",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "ALLOWED_HOSTS": "tickwire.example",
    }
    ran = manage(tmp_path / "var", "shell", "-v0", "-c", SHOW, EMAIL_URL=url, **production)
    assert ran.stdout.strip() == shown, ran.stderr
