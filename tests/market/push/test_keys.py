from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st

from accounts.key_text import is_well_formed, prefix_of
from core.database import fetch
from instruments.models import Instrument
from market.models import IngestKey
from market.push.keys import LEAD, issue_ingest_key, revoke_ingest_key
from tests.factories import make_instrument

OTHER_FIELDS = {field.name for field in Instrument._meta.fields} - {"source", "fallback"}
NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,30}", fullmatch=True)


@given(NAMES)
def test_every_name_of_a_key_may_be_the_source_of_an_instrument(name: str) -> None:
    IngestKey(name=name).clean_fields(exclude=["prefix", "digest"])
    Instrument(source=f"push:{name}", fallback=f"push:{name}").clean_fields(exclude=OTHER_FIELDS)


@pytest.mark.parametrize("name", ["", "two words", "desk\n", "a:b", "café", "a/b", "n" * 31])
@pytest.mark.django_db
def test_no_key_is_issued_under_a_name_that_no_source_can_have(name: str) -> None:
    with pytest.raises(CommandError):
        call_command("issue_ingest_key", name)
    if len(name) <= 30 and "/" not in name:
        with pytest.raises(IntegrityError), transaction.atomic():
            issue_ingest_key(name, by="test")


@pytest.mark.django_db
def test_command_prints_the_key_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    make_instrument("EURUSD")
    call_command("issue_ingest_key", "desk", "eurusd")
    printed = capsys.readouterr().out.strip()
    assert is_well_formed(printed, LEAD)
    assert IngestKey.objects.get(prefix=prefix_of(printed, LEAD)).symbols == "EURUSD"
    with pytest.raises(CommandError, match=r"There is no instrument NOPE\."):
        call_command("issue_ingest_key", "desk", "NOPE")


@pytest.mark.django_db
def test_live_keys_of_the_same_name_are_said_beside_the_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    revoked, kept = (issue_ingest_key("desk", by="test")[0] for _ in range(2))
    assert [revoke_ingest_key(revoked, by="test") for _ in range(2)] == [True, False]
    issue_ingest_key("other", by="test")
    call_command("issue_ingest_key", "desk")
    printed = capsys.readouterr()

    assert is_well_formed(printed.out.strip(), LEAD)
    assert f"desk may push with this key and with {kept.prefix}…: " in printed.err
    call_command("issue_ingest_key", "third")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("length", [18, None])
@pytest.mark.django_db
def test_command_revokes_by_prefix_or_whole_key_and_once(
    length: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    key, secret = issue_ingest_key("desk", by="test")
    call_command("revoke_key", secret[:length])

    assert capsys.readouterr().out.startswith(f"Revoked {key.prefix}…, an ingest key of desk.")
    assert IngestKey.objects.get().revoked_at is not None
    with pytest.raises(CommandError, match="revoked before"):
        call_command("revoke_key", secret[:length])


@pytest.mark.parametrize("prefix", ["tw_ingest_", "tw_ingest_Unknown0"])
@pytest.mark.django_db
def test_command_revokes_no_ingest_key_by_another_prefix(prefix: str) -> None:
    issue_ingest_key("desk", by="test")
    with pytest.raises(CommandError, match="No key has this prefix"):
        call_command("revoke_key", prefix)


@pytest.mark.django_db
def test_secret_is_nowhere_in_the_database() -> None:
    _, secret = issue_ingest_key("desk", by="test")
    rows = str([fetch("SELECT * FROM market_ingestkey"), fetch("SELECT * FROM accounts_controlevent")])
    assert prefix_of(secret, LEAD) in rows
    assert secret[len(prefix_of(secret, LEAD)) :] not in rows
