"""The keys of the log: made once, rotated, sealed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from transparency.checkpoints import Checkpoint
from transparency.keyring import BOTH_SIGN, KeysUnopened, keyring
from transparency.keys import SigningKey
from transparency.models import LogKey

from .ledgers import NOON, after

pytestmark = [pytest.mark.django_db, pytest.mark.services, pytest.mark.usefixtures("known_file")]


def test_key_is_made_on_first_use_and_found_from_then_on() -> None:
    (made,) = keyring.signing_keys(NOON)
    assert keyring.signing_keys(after(9)) == [made]
    row = LogKey.objects.get()
    assert row.key == made.verifier
    assert made.secret_text() not in row.sealed


@pytest.mark.parametrize(
    ("named", "hosts", "origin"),
    [
        ("", ["localhost", "127.0.0.1"], "localhost/ledger"),
        ("", ["*", ".example.com"], "example.com/ledger"),
        ("", ["*"], "localhost/ledger"),
        ("log.example/of-ours", ["example.com"], "log.example/of-ours"),
    ],
)
def test_origin_is_named_or_the_public_host_and_stays(
    settings: Any, named: str, hosts: list[str], origin: str
) -> None:
    settings.LEDGER_ORIGIN, settings.ALLOWED_HOSTS = named, hosts
    assert keyring.signing_keys(NOON)[0].name == origin
    settings.LEDGER_ORIGIN = settings.ALLOWED_HOSTS[0] = "elsewhere.example"
    keyring.rotate(NOON)
    assert [key.name for key in keyring.signing_keys(NOON)] == [origin, origin]


@pytest.mark.parametrize(
    ("size", "name", "origin"),
    [
        (9, "localhost/ledger", "localhost/ledger/after-9-0707070707070707"),
        (9, "localhost/ledger/after-2-0a", "localhost/ledger/after-9-0707070707070707"),
        (0, "localhost/ledger", "localhost/ledger"),
        (9, "elsewhere.example", "localhost/ledger"),
    ],
)
def test_log_of_a_database_that_lost_it_is_named_after_it(
    known_file: Path, size: int, name: str, origin: str
) -> None:
    known_file.write_text(f"key\n{Checkpoint(name, size, bytes([7] * 32))}")
    assert keyring.signing_keys(NOON)[0].name == origin


def test_old_key_signs_beside_the_new_one_for_a_while_and_stays_listed() -> None:
    (old,) = keyring.signing_keys(NOON)
    new = keyring.rotate(NOON).key
    assert [key.verifier for key in keyring.signing_keys(NOON)] == [old.verifier, new]
    assert [key.verifier for key in keyring.signing_keys(NOON + BOTH_SIGN)] == [new]
    assert [row.key for row in LogKey.objects.order_by("pk")] == [old.verifier, new]
    newest = keyring.rotate(after(1), timedelta(0)).key
    assert [key.verifier for key in keyring.signing_keys(after(1))] == [old.verifier, newest]


def keys_with(settings: Any, pepper: str, *fallbacks: str) -> list[SigningKey]:
    settings.KEY_PEPPER, settings.KEY_PEPPER_FALLBACKS = pepper, list(fallbacks)
    return keyring.signing_keys(NOON)


def test_key_outlives_the_pepper_that_it_was_sealed_with(settings: Any) -> None:
    keys = keys_with(settings, "first")
    assert keys_with(settings, "second", "first") == keys
    call_command("rotate_secrets")
    assert keys_with(settings, "second") == keys


def test_key_that_cannot_be_opened_is_not_replaced(settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    keys = keys_with(settings, "first")
    with pytest.raises(KeysUnopened):
        keys_with(settings, "second")
    call_command("rotate_secrets")
    assert "ledger's log" in capsys.readouterr().err
    assert keys_with(settings, "first") == keys
    settings.KEY_PEPPER = "second"
    new = keyring.rotate(NOON).key
    assert [key.verifier for key in keyring.signing_keys(NOON)] == [new]
