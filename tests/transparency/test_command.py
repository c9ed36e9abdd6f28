"""The command `ledger_key`."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from signals_feed.ledger.ledger import signer
from transparency.keyring import keyring
from transparency.models import LogKey, Tile
from transparency.remembered import FILE

from .ledgers import NOON, lose_checkpoints

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known_file")]


def run(*options: str) -> list[str]:
    out = StringIO()
    call_command("ledger_key", *options, stdout=out)
    return out.getvalue().splitlines()


def test_keys_are_listed_with_what_they_do() -> None:
    assert run() == []
    keyring.signing_keys(NOON)
    keyring.rotate(NOON)
    run("--rotate", "--days", "1")
    oldest, old, current = LogKey.objects.order_by("pk")
    shown = [line.partition("  ") for line in run()]
    assert [each[0] for each in shown] == [current.verifier, old.verifier, oldest.verifier]
    assert [each[2].split()[0] for each in shown] == ["current", "signs", "old"]


def test_file_that_cannot_be_read_is_named(known_file: Path) -> None:
    known_file.write_text("key\nbroken")
    with pytest.raises(CommandError, match=FILE):
        run("--rotate")


def test_new_log_is_named_after_what_was_signed_even_if_the_database_lost_it(known_file: Path) -> None:
    with pytest.raises(CommandError):
        run("--new-log")
    signer.sign(NOON)
    lose_checkpoints()
    Tile.objects.all().delete()
    assert run("--new-log")[0].startswith("localhost/ledger/after-0-e3b0c44298fc1c14+")
