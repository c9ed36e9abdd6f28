"""Names that nobody new gets: those under which the service acts, and others; whoever has one keeps it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.test import Client

from accounts.models import Account, User
from tests.factories import make_user

pytestmark = pytest.mark.django_db
# The third is written with wide letters, and is the first once it is normalized.
RESERVED = ["market", "System", "ｍａｒｋｅｔ", "deleted-7", "publisher-7"]  # noqa: RUF001


@pytest.mark.parametrize("name", RESERVED)
def test_commands_refuse_a_reserved_name(name: str) -> None:
    with pytest.raises(CommandError, match="reserved"):
        call_command("issue_key", name)
    with pytest.raises(CommandError, match="reserved"):
        call_command("createsuperuser", username=name, email="", interactive=False)
    assert not User.objects.exists()


def test_reserved_name_is_refused_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The prompt comes again, before any other question."""
    answers = iter(["market", "boss", "boss@example.com"])
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    monkeypatch.setattr("getpass.getpass", lambda *_: "a long walk 7")
    terminal: Any = type("Terminal", (), {"isatty": lambda _: True})()
    call_command("createsuperuser", interactive=True, stdin=terminal)
    assert "reserved" in capsys.readouterr().err
    assert [user.username for user in User.objects.all()] == ["boss"]


def test_user_from_before_keeps_a_reserved_name_and_gets_a_key() -> None:
    make_user("андрей").clean_fields(exclude=["email"])
    with pytest.raises(CommandError, match="other letters"):
        call_command("createsuperuser", username="андрей2", email="", interactive=False)
    make_user("market").full_clean()
    call_command("issue_key", "market")
    assert Account.objects.get().keys.count() == 1


def test_new_name_has_room_on_every_page() -> None:
    longest = "n" * 30
    make_user(f"{longest}before").full_clean(exclude=["email"])
    User(username=longest, password="x").clean_fields(exclude=["email"])
    with pytest.raises(ValidationError, match="at most 30 characters"):
        User(username=f"{longest}n", password="x").clean_fields(exclude=["email"])
    answer = Client().post("/accounts/signup/", {"username": f"{longest}n"})
    assert "Use at most 30 characters." in answer.text
