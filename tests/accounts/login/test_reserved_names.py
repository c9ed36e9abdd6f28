"""No command makes a user under whose name the service acts; whoever has such a name keeps it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Account, User
from tests.factories import make_user

pytestmark = pytest.mark.django_db
# The third is written with wide letters, and is the first once it is normalized.
RESERVED = ["market", "System", "ｍａｒｋｅｔ", "deleted-7", "publisher-7"]  # noqa: RUF001


@pytest.mark.parametrize("name", RESERVED)
def test_issue_key_refuses_a_reserved_name(name: str) -> None:
    with pytest.raises(CommandError, match="reserved"):
        call_command("issue_key", name)
    assert not User.objects.exists()


@pytest.mark.parametrize("name", RESERVED)
def test_createsuperuser_refuses_a_reserved_name(name: str) -> None:
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
    make_user("market").full_clean()
    call_command("issue_key", "market")
    assert Account.objects.get().keys.count() == 1


def test_user_from_before_keeps_a_name_of_other_letters() -> None:
    make_user("андрей").clean_fields(exclude=["email"])
    with pytest.raises(CommandError, match="other letters"):
        call_command("createsuperuser", username="андрей2", email="", interactive=False)
