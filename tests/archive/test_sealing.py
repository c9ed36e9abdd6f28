"""A day of the archive that no longer changes is sealed by the ledger, and what alters it then is named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import date, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import time_machine
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError, connection
from django.utils import timezone
from msgspec.structs import replace
from pytest_django import Settings

from archive.folding.parquet import METADATA, digest, write_table
from archive.manifests import encoded
from archive.proving import verify_day
from core.times import moment
from signals_feed.ledger.ledger import NO_SIGNAL, LedgerEntry, signer
from signals_feed.ledger.verify import LedgerVerdict, verify
from signals_feed.ledger_days import seal
from signals_feed.models import RulesBegun
from tests.archive.keeping import (
    DAY,
    DAY_MS,
    HOUR_MS,
    NEXT_MS,
    NIGHT,
    archive,
    file_of,
    fold,
    journal_of,
    manifest_of,
    seqs,
    store_of,
    tick,
    write,
)
from transparency.checkpoints import WitnessAddress
from transparency.keys import KeyType, SigningKey
from transparency.models import Objection

pytestmark = [pytest.mark.usefixtures("eurusd"), pytest.mark.services]
SEALED = NIGHT + timedelta(days=2)
AFTER = SEALED + timedelta(days=1)


@pytest.fixture
def archived(folder: Path) -> Path:
    RulesBegun.objects.create(rules=2)
    archive(folder, *(replace(tick(seq, DAY_MS), accepted_ms=DAY_MS + seq) for seq in range(1, 6)))
    return folder


@pytest.fixture
def sealed(archived: Path) -> Path:
    fold(archived, SEALED)
    return archived


def entered() -> dict[str, str]:
    told = [json.loads(each.payload) for each in LedgerEntry.objects.all()]
    assert all((each["kind"], each["signal"]) == ("archive", str(NO_SIGNAL)) for each in told)
    assert len({each["day"] for each in told}) == len(told)
    return {each["day"]: each["manifest_sha256"] for each in told}


def manifest_digest(folder: Path, day: date = DAY) -> str:
    return hashlib.sha256(store_of(folder).read(f"manifests/{day}.json")).hexdigest()


def faults(folder: Path) -> list[str]:
    return verify_day(store_of(folder), DAY).faults


def accept_earlier(folder: Path) -> None:
    """The third tick, by which a signal may have been filled, in a file and a manifest that agree."""
    root, file = store_of(folder).root, file_of(folder)
    table, about = pq.read_table(root / file.path), pq.read_metadata(root / file.path).metadata
    times = table["accepted_ms"].to_pylist()
    times[2] -= 1
    column = table.schema.get_field_index("accepted_ms")
    table = table.set_column(column, "accepted_ms", pa.array(times))
    write_table(root / file.path, table, json.loads(about[METADATA]))
    altered = replace(file, sha256=digest(root / file.path), bytes=(root / file.path).stat().st_size)
    manifest = replace(manifest_of(folder), files=[altered])
    (root / f"manifests/{DAY}.json").write_bytes(encoded(manifest))


def test_ticks_that_are_altered_with_their_manifest_are_named_once_their_day_is_sealed(
    archived: Path,
) -> None:
    accept_earlier(archived)
    fold(archived, SEALED)
    assert (faults(archived), verify().fault) == ([], "")
    accept_earlier(archived)
    (fault,) = faults(archived)
    assert fault.startswith("The manifest of 2026-11-18 is not the one that the ledger sealed")
    assert verify().fault == (
        "Entry 1 (archive) seals 2026-11-18, whose manifest in the archive is another one by now."
    )


def refuse(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
    if sql.startswith("INSERT"):
        raise OperationalError("the database is away")
    return execute(sql, *rest)


def test_day_is_sealed_once_when_nothing_was_added_for_a_whole_day(archived: Path) -> None:
    write(archived, tick(6, DAY_MS + HOUR_MS), began=5, at_ms=NEXT_MS)
    for days, count in ((1, 0), (2, 0), (3, 1), (4, 1)):
        if days == 3:
            with connection.execute_wrapper(refuse), pytest.raises(OperationalError):
                fold(archived, NIGHT + timedelta(days=days))
        fold(archived, NIGHT + timedelta(days=days))
        assert LedgerEntry.objects.count() == count
    # By another machine, which looked a moment earlier.
    seal({str(DAY): "0" * 64})
    assert seqs(archived) == [1, 2, 3, 4, 5, 6]
    assert entered() == {str(DAY): manifest_digest(archived)}
    assert verify() == LedgerVerdict(1, LedgerEntry.objects.get().hash)


def test_days_of_before_are_sealed_as_soon_as_all_processes_know_such_entries(
    folder: Path, clock: time_machine.Traveller
) -> None:
    for number in range(3):
        write(folder, tick(number + 1, DAY_MS + number * 24 * HOUR_MS), began=number, at_ms=DAY_MS)
    fold(folder, NIGHT + timedelta(days=2))
    fold(folder, later := NIGHT + timedelta(days=9))
    assert entered() == {}
    clock.move_to(later)
    assert "does not seal it yet" in verify_day(store_of(folder), DAY).notes[0]
    RulesBegun.objects.create(rules=2)
    fold(folder, later)
    days = [DAY + timedelta(days=number) for number in range(3)]
    assert entered() == {str(day): manifest_digest(folder, day) for day in days}
    assert "does not seal" not in "".join(verify_day(store_of(folder), DAY).notes)


def test_ledger_that_lacks_entries_seals_nothing_until_it_has_them(
    archived: Path, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    witness = SigningKey.make("witness.example", KeyType.COSIGNATURE).verifier
    settings.WITNESSES = [WitnessAddress(witness, "http://127.0.0.1:9")]
    signed = signer.sign(timezone.now())
    assert signed is not None
    Objection.objects.create(origin=signed.origin, witness=str(witness), size=1)
    write(archived, tick(6, NEXT_MS + 1), began=5, at_ms=NEXT_MS)
    assert fold(archived, SEALED) == [DAY + timedelta(days=1)]
    assert "No day is sealed: The ledger lacks entries" in caplog.text
    assert entered() == {}
    Objection.objects.all().delete()
    fold(archived, AFTER)
    assert str(DAY) in entered()


@pytest.mark.parametrize("at_ms", [DAY_MS + HOUR_MS, NEXT_MS + 48 * HOUR_MS], ids=["alone", "with others"])
def test_ticks_that_come_after_their_day_was_sealed_are_kept_beside_it(
    sealed: Path, clock: time_machine.Traveller, caplog: pytest.LogCaptureFixture, at_ms: int
) -> None:
    """As those of a machine that was away for days."""
    clock.move_to(moment(at_ms))
    write(sealed, tick(6, at_ms), tick(7, DAY_MS + HOUR_MS), began=5, at_ms=at_ms)
    (segment,) = journal_of(sealed).segments()
    fold(sealed, AFTER + timedelta(days=1))
    assert (seqs(sealed), journal_of(sealed).segments()) == ([1, 2, 3, 4, 5], [])
    assert segment.path.with_name(f"{segment.path.name}.late").exists()
    assert "Ticks of 2026-11-18 came after that day was sealed" in caplog.text
    assert (faults(sealed), verify().fault) == ([], "")


def verify_archive() -> str:
    err = StringIO()
    try:
        call_command("verify_archive", stdout=StringIO(), stderr=err)
    except CommandError:
        return err.getvalue()
    return ""


def test_retention_is_no_fault_and_a_day_that_goes_before_older_ones_is(sealed: Path) -> None:
    for number in range(1, 4):
        at_ms = DAY_MS + number * 24 * HOUR_MS
        write(sealed, tick(number + 5, at_ms), began=number + 4, at_ms=at_ms)
    fold(sealed, later := NIGHT + timedelta(days=3))
    fold(sealed, later + timedelta(days=3), keep_days=3)
    assert len(entered()) == 4
    assert (verify().fault, verify_archive()) == ("", "")
    gone = DAY + timedelta(days=2)
    for path in store_of(sealed).listing():
        if str(gone) in path:
            store_of(sealed).remove(path)
    assert f"There is no manifest of {gone}, which the ledger sealed" in verify_archive()


def test_archive_that_is_away_is_said_and_is_no_fault(sealed: Path) -> None:
    accept_earlier(sealed)
    (store_of(sealed).root / "archive.json").unlink()
    call_command("verify_ledger", stdout=(out := StringIO()))
    assert out.getvalue().startswith("1 entries hold.")
    assert "Warning: The days of the archive are not compared: " in out.getvalue()
