"""The doctor and Prometheus hear whether the ledger is signed, and by whom else."""

from __future__ import annotations

from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone
from prometheus_client import CollectorRegistry

from operations.copying.archive import Manifest
from operations.copying.copies import warnings
from operations.ledger_log import LATE, check_checkpoints
from signals_feed.ledger.guards import put_up_triggers, take_down_triggers
from signals_feed.ledger.ledger import following, signer
from tests.operations.doctor.diagnoses import faults, only_fault
from transparency.checkpoints import Checkpoint, Note, WitnessAddress
from transparency.checkpoints import sign as sign_note
from transparency.keyring import named_after
from transparency.keys import KeyType, SigningKey
from transparency.models import Cosignature, LogKey, Objection, SignedCheckpoint
from transparency.signing import LogMetrics
from transparency.witnesses import WitnessLink, witnesses

pytestmark = pytest.mark.django_db
FIRST, SECOND = (
    WitnessAddress(SigningKey.make(f"{name}.example", KeyType.COSIGNATURE).verifier, "http://127.0.0.1:9")
    for name in ("first", "second")
)
RESTORED = Manifest(1, timezone.now(), "sqlite", (), (), (), (0, ""))


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, settings: Any) -> None:
    settings.VAR_DIR = tmp_path


def sign(ago: timedelta = timedelta()) -> SignedCheckpoint:
    signed = signer.sign(timezone.now() - ago)
    assert signed is not None
    return signed


def cosign(signed: SignedCheckpoint, witness: WitnessAddress, ago: timedelta = timedelta()) -> datetime:
    at = timezone.now() - ago
    Cosignature.objects.add(signed, str(witness.key), at, "line\n", at)
    return at


def test_ledger_that_is_not_signed_any_more_is_questionable() -> None:
    assert faults(check_checkpoints()) == []
    sign(LATE - timedelta(minutes=1))
    assert faults(check_checkpoints()) == []
    SignedCheckpoint.objects.update(signed_at=timezone.now() - LATE)
    assert only_fault(check_checkpoints())[0] == "warn"


def test_ledger_that_lacks_entries_that_were_signed_is_a_fault(settings: Any) -> None:
    signed, settings.WITNESSES = sign(), [FIRST]
    cosign(signed, FIRST)
    Objection.objects.create(origin=signed.origin, witness=str(FIRST.key), size=1)
    level, says = only_fault(check_checkpoints())
    assert (level, says) == ("fail", "The ledger lacks entries: first.example has cosigned 1.")
    assert next(warnings(RESTORED)).startswith(says)


# Whoever knows the database's password can write such rows, and no trigger can tell them from true ones.
@pytest.mark.parametrize("planted", ["key", "checkpoint", "unreadable checkpoint"])
def test_rows_that_were_planted_in_the_log_are_told_and_a_new_log_ends_them(planted: str) -> None:
    signed = sign()
    stranger = SigningKey.make(signed.origin, KeyType.ED25519)
    if planted == "key":
        key, elsewhere = LogKey.objects.get(), SigningKey.make("elsewhere.example", KeyType.ED25519)
        LogKey.objects.create(origin="elsewhere.example", verifier=str(elsewhere.verifier), sealed=key.sealed)
    else:
        text = str(Checkpoint(signed.origin, 10**9, bytes(32)))
        note = str(Note(text, (sign_note(text, stranger),))) if planted == "checkpoint" else "x"
        about = {"origin": signed.origin, "size": 10**9, "note": note}
        SignedCheckpoint.objects.create(**about, made_at=signed.made_at, signed_at=signed.signed_at)
    level, says = only_fault(check_checkpoints())
    assert (level, "not made with the keys of this installation" in says) == ("fail", True)

    call_command("ledger_key", "--new-log", stdout=StringIO())
    assert sign().origin == named_after(signed.checkpoint)
    assert faults(check_checkpoints()) == []


def test_database_from_before_the_log_that_was_signed_last_is_told() -> None:
    before = sign().origin
    call_command("ledger_key", "--new-log", stdout=StringIO())
    sign()
    take_down_triggers()
    LogKey.objects.exclude(origin=before).delete()
    SignedCheckpoint.objects.exclude(origin=before).delete()
    put_up_triggers()
    level, says = only_fault(check_checkpoints())
    assert (level, f"{before}/after-0-" in says) == ("warn", True)
    assert next(warnings(RESTORED)).startswith(says)


def test_witness_that_does_not_cosign_is_named(settings: Any) -> None:
    signed, settings.WITNESSES = sign(), [FIRST, SECOND]
    cosign(signed, FIRST)
    level, says = only_fault(check_checkpoints())
    assert (level, says) == ("warn", "second.example has not cosigned yet.")
    cosign(signed, SECOND)
    assert faults(check_checkpoints()) == []
    cosign(signed, FIRST, ago=LATE)
    assert "first.example" in only_fault(check_checkpoints())[1]


def test_figures_tell_what_is_not_signed_and_how_old_each_witness_is(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = CollectorRegistry()
    registry.register(LogMetrics(following))
    links = [WitnessLink(FIRST), WitnessLink(SECOND)]
    monkeypatch.setattr(witnesses, "links", links)
    links[1].cosigned_at = timezone.now() - timedelta(hours=2)
    assert registry.get_sample_value("tickwire_ledger_is_signed") == 1
    age_s = "tickwire_witness_age_seconds"
    assert registry.get_sample_value(age_s, {"witness": "first.example"}) is None
    assert registry.get_sample_value(age_s, {"witness": "second.example"}) == pytest.approx(7_200, abs=600)
    monkeypatch.setattr(following, "fault", "It is forked.")
    assert registry.get_sample_value("tickwire_ledger_is_signed") == 0
