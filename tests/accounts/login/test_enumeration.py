"""Whether an address has an account is told neither by what is answered nor by the work that is done."""

from __future__ import annotations

import re
from typing import ClassVar, NamedTuple

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.hashers import MD5PasswordHasher
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from accounts.models import User
from tests.factories import make_account, make_tiers, make_user

pytestmark = pytest.mark.django_db
PASSWORD, WRONG = "a long walk 7", "not the right one 1"
TAKEN, FREE = "ada@example.com", "new@example.com"


@pytest.fixture(autouse=True)
def _as_in_production(settings: Settings) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.PASSWORD_HASHERS = [f"{CountedHasher.__module__}.CountedHasher"]
    make_tiers()
    user = make_user("ada", PASSWORD)
    make_account(user)
    EmailAddress.objects.update_or_create(
        user=user, email=TAKEN, defaults={"verified": True, "primary": True}
    )


class CountedHasher(MD5PasswordHasher):
    """Knows how often a password was hashed, which is what takes the time of a real one."""

    hashed: ClassVar[int] = 0

    def encode(self, password: str, salt: str) -> str:
        CountedHasher.hashed += 1
        encoded: str = super().encode(password, salt)
        return encoded


class Work(NamedTuple):
    status: int
    location: str
    page: str
    hashed: int
    statements: list[str]


def post(path: str, fields: dict[str, str]) -> Work:
    """In a browser that has not been here before; its token differs, and nothing else may."""
    cache.clear()
    client, before = Client(), CountedHasher.hashed
    with CaptureQueriesContext(connection) as asked:
        answer = client.post(path, fields)
    hashed = CountedHasher.hashed - before
    page = client.get(answer["Location"]).text if answer.status_code == 302 else answer.text
    for value in fields.values():
        page = page.replace(value, "")
    page = re.sub(r'(csrfmiddlewaretoken" value|nonce)="[^"]+"', "", page)
    statements = sorted(verb_and_table(query["sql"]) for query in asked.captured_queries)
    return Work(answer.status_code, answer.get("Location", ""), page, hashed, statements)


def verb_and_table(sql: str) -> str:
    """Savepoints come and go with the test's own transaction. PostgreSQL reads a long answer by a cursor."""
    verb = sql.split()[0].replace("DECLARE", "SELECT")
    table = re.search(r'(?:FROM|INTO|UPDATE) "(\w+)"', sql)
    return f"{verb} {table[1] if table else ''}".strip()


def sign_up(name: str, address: str) -> Work:
    fields = {"username": name, "email": address, "password1": PASSWORD, "password2": PASSWORD}
    return post("/accounts/signup/", fields)


def log_in(name: str, password: str = WRONG) -> Work:
    return post("/accounts/login/", {"login": name, "password": password})


def test_signing_up_answers_alike_and_does_the_same_work_for_an_address_that_has_an_account() -> None:
    known, unknown = sign_up("eve", TAKEN), sign_up("bob", FREE)
    assert known == unknown
    assert (known.status, known.hashed) == (302, 1)


def test_signing_up_again_changes_nothing_and_tells_the_owner(mailoutbox: list[EmailMessage]) -> None:
    before = set(User.objects.values_list("username", flat=True))
    sign_up("eve", TAKEN)
    assert set(User.objects.values_list("username", flat=True)) == before
    assert set(EmailAddress.objects.values_list("email", flat=True)) == {TAKEN}
    (mail,) = mailoutbox
    assert mail.to == [TAKEN]
    assert "already" in str(mail.body)
    # The name stays free for whoever wants it.
    assert sign_up("eve", FREE).status == 302
    assert User.objects.filter(username="eve").exists()


def test_control_a_taken_name_is_told_because_names_are_public() -> None:
    taken, free = sign_up("ada", FREE), sign_up("bob", FREE)
    assert (taken.status, free.status) == (200, 302)
    assert "username" in taken.page


@pytest.mark.parametrize(
    ("known", "unknown"), [("ada", "nobody"), ("gone", "nobody"), (TAKEN, "nobody@example.com")]
)
def test_failed_login_answers_alike_and_does_the_same_work(known: str, unknown: str) -> None:
    make_user("gone", PASSWORD, is_active=False)
    found, missed = log_in(known), log_in(unknown)
    assert (found.status, found.page) == (missed.status, missed.page)
    assert found.hashed == missed.hashed == 1
    # Of a confirmed address allauth asks one table less, which takes a thousandth of what hashing does.
    assert writes(found) == writes(missed)
    assert set(found.statements) == set(missed.statements)
    if known == "ada":
        assert found.statements == missed.statements != log_in("ada", PASSWORD).statements


def writes(work: Work) -> list[str]:
    reads = ("SELECT", "SAVEPOINT", "RELEASE")
    return [statement for statement in work.statements if not statement.startswith(reads)]
