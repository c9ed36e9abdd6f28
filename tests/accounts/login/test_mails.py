"""A mail server that refuses, or accepts and says nothing more."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.core.mail import EmailMessage
from django.test import Client
from pytest_django.fixtures import Settings

from accounts.login import mails
from accounts.login.mails import MailQueue
from tests.factories import make_account, make_tiers, make_user
from tests.patience import PATIENCE_S, wait_until

PASSWORD = "a long walk 7"
TAKEN, UNCONFIRMED = "ada@example.com", "eve@example.com"
FORMS = {
    "signing up": ("/accounts/signup/", {"username": "bob", "email": "bob@example.com"}),
    "signing up with an address that has an account": (
        "/accounts/signup/",
        {"username": "bob", "email": TAKEN},
    ),
    "resetting a password": ("/accounts/password/reset/", {"email": TAKEN}),
    "resetting a password that nobody has": ("/accounts/password/reset/", {"email": "no@example.com"}),
    "logging in before the address is confirmed": (
        "/accounts/login/",
        {"login": "eve", "password": PASSWORD},
    ),
}


@pytest.fixture
def _people(db: None, settings: Settings) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    make_tiers()
    for name, address in (("ada", TAKEN), ("eve", UNCONFIRMED)):
        user = make_user(name, PASSWORD)
        make_account(user)
        EmailAddress.objects.update_or_create(
            user=user, email=address, defaults={"verified": name == "ada", "primary": True}
        )


def use(settings: Settings, port: int) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.EMAIL_TIMEOUT = PATIENCE_S


@pytest.fixture
def silent(settings: Settings) -> Iterator[socket.socket]:
    """It accepts, and greets nobody."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        use(settings, server.getsockname()[1])
        yield server


@pytest.fixture
def outgoing(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailQueue]:
    """As in a server. Those that hang are left to their time."""
    made = MailQueue()
    monkeypatch.setattr("accounts.login.adapters.outgoing", made)
    monkeypatch.setattr(mails, "STOP_WITHIN_S", 0.0)
    made.start()
    yield made
    asyncio.run(made.stop())


def ask(name: str) -> int:
    path, fields = FORMS[name]
    client = Client(raise_request_exception=False)
    return client.post(path, {"password1": PASSWORD, "password2": PASSWORD} | fields).status_code


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.usefixtures("_people")
def test_page_answers_though_the_mail_server_refuses(
    name: str, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    use(settings, 1)
    assert ask(name) == 302
    assert "No mail was sent of account/email/" in caplog.text


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.usefixtures("_people", "silent")
def test_page_waits_for_no_mail_server_that_hangs(name: str, outgoing: MailQueue) -> None:
    assert ask(name) == 302
    assert outgoing.unsent == 1


@pytest.mark.usefixtures("_people")
def test_mail_for_the_terminal_goes_there_and_into_no_log(
    settings: Settings, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    caplog.set_level("DEBUG")
    assert ask("signing up") == 302
    shown = capsys.readouterr()
    assert "/accounts/confirm-email/" in shown.out
    assert "confirm-email/" not in caplog.text + shown.err


def make_mail(subject: str) -> EmailMessage:
    return EmailMessage(subject, "Hello.", to=["ada@example.com"])


@contextmanager
def busy(outgoing: MailQueue, server: socket.socket) -> Iterator[None]:
    """Each thread has a mail that the server does not take."""
    with ExitStack() as connected:
        for number in range(mails.THREADS):
            outgoing.send("kind", make_mail(str(number)))
            connected.enter_context(server.accept()[0])
        yield


def test_mails_beyond_those_that_may_wait_are_told_of(
    silent: socket.socket, outgoing: MailQueue, caplog: pytest.LogCaptureFixture
) -> None:
    with busy(outgoing, silent):
        for number in range(mails.MOST_WAITING + 1):
            outgoing.send("kind", make_mail(str(number)))
        assert outgoing.unsent == mails.THREADS + mails.MOST_WAITING
    assert caplog.text.count(f"No mail was sent of kind: {mails.MOST_WAITING} others wait") == 1


async def test_mails_that_wait_as_the_service_stops_are_told_of(
    silent: socket.socket, outgoing: MailQueue, caplog: pytest.LogCaptureFixture
) -> None:
    with busy(outgoing, silent):
        outgoing.send("kind", make_mail("last"))
        await outgoing.stop()
    assert caplog.text.count("No mail was sent of kind: the service stops\n") == 1
    assert caplog.text.count("the service stops before the mail server has taken it") == mails.THREADS


def test_mail_that_cannot_be_made_keeps_no_other_from_arriving(
    outgoing: MailQueue, caplog: pytest.LogCaptureFixture
) -> None:
    mail.outbox = []
    for _ in range(mails.THREADS):
        outgoing.send("kind", make_mail("two\nlines"))
    for number in range(5):
        outgoing.send("kind", make_mail(str(number)))
    wait_until(lambda: sorted(sent.subject for sent in mail.outbox) == list("01234"))
    # The thread of the second one may not have logged it yet.
    wait_until(lambda: caplog.text.count("A mail could not be made") == mails.THREADS)
