"""GET /publishers/{name}/bundle.zip, and that what it answers holds."""

from __future__ import annotations

import asyncio
import fcntl
import math
import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from instruments.catalogue import catalogue
from instruments.models import Instrument, WithheldSource
from signals_feed.bundle import building
from signals_feed.ledger.ledger import LedgerEntry, signer
from signals_feed.publisher_checks import witnessed_before_end
from signals_feed.publishing.actions import remove_demo
from tests.factories import make_account, make_user
from tests.signals_feed.bundle.worlds import Verdict, verify
from tests.signals_feed.published_signals import (
    ASK,
    BID,
    SELL,
    close_at,
    make_published,
    make_published_by_name,
)
from transparency.checkpoints import Note, WitnessAddress, sign
from transparency.keys import KeyType, SigningKey
from transparency.models import Cosignature, SignedCheckpoint

pytestmark = [pytest.mark.django_db, pytest.mark.services]
WITNESS = SigningKey.make("witness.example", KeyType.COSIGNATURE)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Any) -> Path:
    settings.VAR_DIR = tmp_path
    settings.WITNESSES = [WitnessAddress(WITNESS.verifier, "https://witness.example")]
    return tmp_path / building.FOLDER


def get(name: str = "anna", **headers: str) -> Any:
    return Client().get(f"/publishers/{name}/bundle.zip", headers=headers)


def body(answer: Any) -> bytes:
    async def collect() -> bytes:
        return b"".join([block async for block in answer.streaming_content])

    assert answer.status_code == 200
    return asyncio.run(collect())


def sign_ledger() -> SignedCheckpoint:
    signed = signer.sign(timezone.now())
    assert signed is not None
    return signed


def cosign(signed: SignedCheckpoint) -> None:
    now = timezone.now()
    # Never before what it saw.
    line = sign(Note.read(signed.note.encode()).text, WITNESS, math.ceil(now.timestamp()))
    Cosignature.objects.add(signed, str(WITNESS.verifier), now, str(line), now)


def texts_of(size: int) -> list[str]:
    entries = LedgerEntry.objects.filter(position__lte=size).order_by("position")
    return [*entries.values_list("payload", flat=True)]


def verified(folder: Path, bundle: bytes, size: int) -> Verdict:
    return verify(folder, bundle, WITNESS.verifier, texts_of(size), "--fresh")


def judged(found: Verdict) -> list[str]:
    return [line for line in found.lines if line.startswith("holds signal")]


def make_record() -> User:
    anna = make_user("anna")
    close_at(make_published(user=anna), BID, ASK)
    make_published(user=make_user("bert"))
    make_published(None, user=anna, **SELL)
    return anna


def test_bundle_holds_and_grows_with_what_a_witness_has_seen(tmp_path: Path) -> None:
    anna = make_record()
    cosign(first := sign_ledger())
    found = verified(tmp_path, body(get()), first.size)
    assert (found.code, found.faults, len(judged(found))) == (2, [], 2)
    close_at(make_published(user=anna), BID, ASK)
    second = sign_ledger()
    assert len(judged(verified(tmp_path, body(get()), first.size))) == 2
    cosign(second)
    found = verified(tmp_path, body(get()), second.size)
    assert (found.code, found.faults, len(judged(found))) == (2, [], 3)


def witnessed() -> dict[UUID, bool | None]:
    return witnessed_before_end([*LedgerEntry.objects.all()])


def test_pages_tell_who_witnessed_the_ledger_and_which_signals_before_their_end(settings: Any) -> None:
    anna = make_user("anna")
    early, late = make_published(user=anna), make_published(user=anna)
    close_at(late, BID, ASK)
    assert witnessed() == {early.pk: None, late.pk: False}
    assert "has not cosigned yet" in (page := Client().get("/ledger").text)
    assert "no independent witness" not in page
    cosign(sign_ledger())
    assert witnessed() == {early.pk: True, late.pk: False}
    close_at(early, BID, ASK)
    assert witnessed() == {early.pk: True, late.pk: False}
    assert re.search(r"witness\.example</dt><dd>3 entries", Client().get("/ledger").text)
    assert "saw 1 of 2 before they ended" in Client().get("/publishers/anna").text
    settings.WITNESSES = []
    assert "no independent witness yet" in Client().get("/ledger").text
    assert witnessed() == {early.pk: False, late.pk: False}


def test_without_a_witness_it_has_all_that_was_signed(tmp_path: Path) -> None:
    make_record()
    signed = sign_ledger()
    found = verify(tmp_path, body(get()), texts=texts_of(signed.size))
    assert (found.code, found.faults, len(judged(found))) == (2, [], 2)


def test_publications_by_name_and_signals_that_are_gone_are_in_it(tmp_path: Path) -> None:
    """As version 0.1.0 told the ledger, and a demo that was removed."""
    anna = make_user("anna")
    make_account(anna, is_demo=True)
    gone = make_published(user=anna)
    remove_demo([anna.pk])
    make_published_by_name(user=anna)
    cosign(signed := sign_ledger())
    found = verified(tmp_path, body(get()), signed.size)
    assert (found.code, found.faults, len(judged(found))) == (2, [], 2)
    assert str(gone.pk) in "".join(judged(found))


def test_prices_that_are_withheld_are_hashes_and_may_wait(tmp_path: Path) -> None:
    began, over = (timezone.now() - timedelta(minutes=each) for each in (10, 5))
    make_published(user=make_user("anna"), published_at=began, expires_at=over)
    cosign(signed := sign_ledger())
    assert verified(tmp_path, body(get()), signed.size).code == 2
    Instrument.objects.update(source="kraken")
    WithheldSource.objects.create(name="kraken", why="Its terms.")
    catalogue.load_now()
    for path in tmp_path.rglob("*.zip"):
        path.unlink()
    found = verified(tmp_path, body(get()), signed.size)
    assert (found.code, found.faults) == (2, [])


def test_bundle_is_built_once_for_a_checkpoint(folder: Path) -> None:
    anna = make_record()
    sign_ledger()
    body(get())
    (built,) = folder.glob("*.zip")
    built.write_bytes(b"as it lies there")
    answer = get()
    assert body(answer) == b"as it lies there"
    assert (answer["Content-Length"], answer["Content-Type"]) == ("16", "application/zip")
    assert get(if_none_match=answer["ETag"]).status_code == 304
    assert Client().head("/publishers/anna/bundle.zip")["Content-Length"] == "16"
    make_published(user=anna)
    sign_ledger()
    body(get())
    assert [path.name for path in folder.glob("*.zip")] != [built.name]
    assert len([*folder.glob("*.zip")]) == 1


def test_only_so_many_bundles_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_record()
    sign_ledger()
    monkeypatch.setattr(building, "MOST_KEPT", 1)
    for name in ("anna", "bert"):
        body(get(name))
    assert [path.name.partition("-")[0] for path in folder.glob("*.zip")] == [
        str(User.objects.get(username="bert").pk)
    ]


def test_one_bundle_is_built_at_a_time(folder: Path) -> None:
    make_record()
    sign_ledger()
    folder.mkdir()
    with folder.joinpath(building.LOCK).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = get()
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert body(get())


def test_no_bundle_is_kept_without_the_ticks_of_an_archive_that_is_away(
    tmp_path: Path, folder: Path, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ARCHIVE_DIR = tmp_path / "archive"
    settings.ARCHIVE_DIR.mkdir()
    (settings.ARCHIVE_DIR / "manifests").write_text("no folder")
    make_record()
    sign_ledger()
    answer = get()
    assert (answer.status_code, answer["Retry-After"]) == (503, "60")
    assert "No bundle can be written: " in caplog.text
    assert [path.name for path in folder.iterdir()] == [building.LOCK]
    (settings.ARCHIVE_DIR / "manifests").unlink()
    assert body(get())


def test_before_the_first_checkpoint_it_is_not_there_yet() -> None:
    make_record()
    answer = get()
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert get("nobody").status_code == 404
