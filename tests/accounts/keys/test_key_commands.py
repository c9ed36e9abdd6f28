from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from accounts.key_text import digest_of, is_well_formed
from accounts.keys.issuing import MAX_USABLE_KEYS, MOST_KEYS_A_DAY, issue_key, revoke_key
from accounts.management.commands import issue_key as issue_key_command
from accounts.models import Account, ApiKey, User
from core.events.kinds import EventKind
from core.program import operator
from tests.accounts.back_office.office import published
from tests.factories import make_key
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.served, pytest.mark.usefixtures("transactional_db")]
ROOT = Path(__file__).parents[3]


def manage(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command as a person runs it, on the database of the test."""
    database = connection.settings_dict
    url = (
        f"sqlite:///{database['NAME']}"
        if connection.vendor == "sqlite"
        else f"postgresql://{database['USER']}@{database['HOST']}:{database['PORT']}/{database['NAME']}"
    )
    environment = os.environ | {"DATABASE_URL": url, "KEY_PEPPER": settings.KEY_PEPPER}
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_key_stands_alone_on_standard_output() -> None:
    done = manage("issue_key", "ada")
    assert (done.returncode, done.stderr) == (0, "")
    assert is_well_formed(done.stdout.removesuffix("\n"))
    stored = ApiKey.objects.get()
    assert stored.digest == digest_of(done.stdout.strip(), settings.KEY_PEPPER)
    assert stored.account.user.username == "ada"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("issue_key", "ada", "--tier", "gold"), "There is no tier 'gold'. It is one of free, pro, premium."),
        (("revoke_key", "tw_live_unknown0"), "No key has this prefix."),
        (("issue_key", "not a name"), "valid username"),
    ],
)
def test_refusal_is_one_line_on_standard_error(arguments: tuple[str, ...], sentence: str) -> None:
    done = manage(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert sentence in done.stderr
    assert not User.objects.exists()


def test_tier_of_an_account_is_free_at_first_and_kept_unless_told(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("issue_key", "ada")
    account = Account.objects.get()
    assert (account.tier.name, account.user.has_usable_password()) == ("free", False)
    call_command("issue_key", "ada", tier="premium", name="second")
    call_command("issue_key", "ada")
    account.refresh_from_db()
    assert account.tier.name == "premium"
    assert [key.name for key in account.keys.order_by("pk")] == [
        "issued by command",
        "second",
        "issued by command",
    ]
    # A command is not bound by the keys of a day.
    for number in range(MOST_KEYS_A_DAY - account.keys.count()):
        revoke_key(issue_key(account, f"{number}", by="test")[0], by="test")
    capsys.readouterr()
    call_command("issue_key", "ada")
    assert is_well_formed(capsys.readouterr().out.strip())


def test_many_owners_get_a_line_each_and_an_invalid_name_or_a_full_account_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issue_key_command, "BATCH", 2)
    call_command("issue_key", "ada", "bob", "ada", tier="pro")
    lines = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert [owner for owner, _ in lines] == ["ada", "bob", "ada"]
    stored = ApiKey.objects.order_by("pk")
    assert [key.digest for key in stored] == [digest_of(key, settings.KEY_PEPPER) for _, key in lines]
    assert [key.account.user.username for key in stored] == ["ada", "bob", "ada"]
    assert {key.account.tier.name for key in stored} == {"pro"}
    assert published().count((EventKind.ACCOUNT_CHANGED, operator())) == 2

    with pytest.raises(CommandError, match=r"^not a name: Enter a valid username"):
        call_command("issue_key", "eve", "not a name")
    assert not User.objects.filter(username="eve").exists()
    monkeypatch.setattr(sys, "stdin", io.StringIO("eve\n\nbob\n" + "ada\n" * (MAX_USABLE_KEYS - 1)))
    with pytest.raises(CommandError, match=r"^ada: An account can have 25 usable keys"):
        call_command("issue_key", "-")
    # What is printed is issued, and nothing else.
    issued = capsys.readouterr().out.splitlines()
    assert issued[0].startswith("eve,tw_live_")
    assert ApiKey.objects.count() == 3 + len(issued)
    assert Account.objects.get(user__username="eve").tier.name == "free"


@pytest.mark.parametrize("words", [["-"], ["ada", "-"]], ids=" ".join)
def test_list_without_an_owner_is_no_success_and_the_word_for_it_no_owner(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    with pytest.raises(CommandError, match="on standard input"):
        call_command("issue_key", *words)
    assert not User.objects.filter(username__in=["ada", "-"]).exists()


@pytest.mark.parametrize("length", [16, 50])
def test_prefix_or_whole_key_revokes_once_and_a_part_nothing(
    length: int, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = make_key()
    for part in ("", "tw_live_"):
        with pytest.raises(CommandError):
            call_command("revoke_key", part)
    assert ApiKey.objects.get().revoked_at is None
    call_command("revoke_key", secret[:length])
    assert ApiKey.objects.get().revoked_at is not None
    assert secret[:16] in (out := capsys.readouterr().out)
    assert secret not in out
    with pytest.raises(CommandError, match="revoked before"):
        call_command("revoke_key", secret)
