"""Which checkpoints are signed, when, and which never."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transparency import merkle
from transparency.checkpoints import Checkpoint, Note
from transparency.keyring import keyring
from transparency.models import LogKey, SignedCheckpoint, Tile
from transparency.remembered import Forked
from transparency.signing import AGAIN, LEAST_APART, MOST_AT_ONCE, Signer

from . import naive
from .ledgers import NOON, Texts, after, lose_checkpoints, make_signer

pytestmark = [pytest.mark.django_db, pytest.mark.services, pytest.mark.usefixtures("known_file")]


def signed_sizes() -> list[int]:
    return list(SignedCheckpoint.objects.order_by("pk").values_list("size", flat=True))


def test_checkpoint_is_that_of_the_entries_and_signed_by_the_listed_key() -> None:
    ledger = Texts(0)
    signer = make_signer(ledger)
    for size in (0, 1, 300):
        ledger.all = Texts(size).all
        signed = signer.sign(NOON)
        assert signed is not None
        note = Note.read(signed.note.encode())
        assert set(note.signed_by([LogKey.objects.get().key])) == {LogKey.objects.get().key}
        root = naive.head([text.encode() for text in ledger.all])
        assert Checkpoint.read(note.text) == Checkpoint("localhost/ledger", size, root)
    assert signed_sizes() == [0, 1, 300]


def test_growth_is_signed_at_most_every_two_seconds_and_standstill_every_hour() -> None:
    ledger = Texts(0)
    signer = make_signer(ledger)
    assert signer.look(NOON) == NOON + AGAIN
    ledger.all.append("more")
    assert signer.look(after(1)) == NOON + LEAST_APART
    assert signed_sizes() == [0]
    assert signer.look(after(2)) == after(2) + AGAIN
    assert signed_sizes() == [0, 1]
    again = after(2) + AGAIN
    assert signer.look(again) == again + AGAIN
    assert signed_sizes() == [0, 1]
    newest = SignedCheckpoint.objects.newest()
    assert newest is not None
    assert (newest.made_at, newest.signed_at) == (after(2), again)


def test_clock_that_was_set_back_keeps_nobody_waiting() -> None:
    ledger = Texts(0)
    signer = make_signer(ledger)
    signer.look(after(9_000))
    ledger.all.append("more")
    assert signer.look(NOON) == NOON + AGAIN
    assert signed_sizes() == [0, 1]


def test_long_ledger_of_before_is_signed_in_parts() -> None:
    signer = make_signer(Texts(MOST_AT_ONCE + 1))
    assert signer.look(NOON) == NOON + LEAST_APART
    signer.look(after(2))
    assert signed_sizes() == [MOST_AT_ONCE, MOST_AT_ONCE + 1]


def test_of_two_signers_at_once_one_signs() -> None:
    ledger = Texts(3)
    first, second = make_signer(ledger), make_signer(ledger)
    first.sign(NOON)
    ledger.all += ["more", "and more"]

    def overtake() -> None:
        ledger.on_read = int
        assert second.sign(after(2)) is not None

    ledger.on_read = overtake
    assert first.sign(after(2)) is None
    assert signed_sizes() == [3, 5]
    assert first.look(after(3)) == after(2) + AGAIN


def grown(size: int = 300) -> tuple[Texts, Signer]:
    """A ledger of which two checkpoints were signed."""
    ledger = Texts(size)
    signer = make_signer(ledger)
    signer.sign(NOON)
    ledger.all += ["more", "and more"]
    signer.sign(after(2))
    return ledger, signer


def lose(ledger: Texts) -> None:
    ledger.all.pop()


def alter(ledger: Texts) -> None:
    ledger.all[-1] = "another"


def reorder(ledger: Texts) -> None:
    ledger.all[-2:] = reversed(ledger.all[-2:])


@pytest.mark.parametrize("forge", [lose, alter, reorder])
@pytest.mark.parametrize("by_new_process", [False, True])
def test_ledger_that_does_not_extend_the_last_checkpoint_is_not_signed(
    forge: Callable[[Texts], None], known_file: Path, by_new_process: bool
) -> None:
    ledger, signer = grown()
    if by_new_process:
        signer = make_signer(ledger)
        known_file.unlink()
    forge(ledger)
    ledger.all.append("later")
    if forge is lose:
        ledger.all.pop()
    with pytest.raises(Forked):
        signer.look(after(9_000))
    assert signed_sizes() == [300, 302]


def put_back() -> None:
    """The database, to the state after the first checkpoint."""
    lose_checkpoints(after=300)
    tiles = naive.tree_of(300)
    Tile.objects.write(tiles)


@pytest.mark.parametrize("by_new_process", [False, True])
@pytest.mark.parametrize("entries", [300, 301, 302, 310])
def test_database_that_was_put_back_is_not_signed(by_new_process: bool, entries: int) -> None:
    ledger, signer = grown()
    put_back()
    ledger.all = Texts(entries).all
    again = make_signer(ledger) if by_new_process else signer
    with pytest.raises(Forked):
        again.check(entries)
    with pytest.raises(Forked):
        again.look(after(2))
    assert signed_sizes() == [300]


def test_ledger_without_its_last_entries_is_not_written_on() -> None:
    _, signer = grown()
    signer.check(302)
    with pytest.raises(Forked):
        signer.check(301)


def test_missing_entries_that_are_supplied_again_are_signed_on() -> None:
    ledger, _ = grown()
    put_back()
    ledger.all.append("later")
    signer = make_signer(ledger)
    signer.look(after(2))
    signer.check(303)
    assert signed_sizes() == [300, 303]


def test_database_without_any_checkpoint_is_signed_up_to_what_is_known() -> None:
    ledger, _ = grown(MOST_AT_ONCE)
    lose_checkpoints()
    Tile.objects.all().delete()
    make_signer(ledger).look(after(2))
    assert signed_sizes() == [MOST_AT_ONCE + 2]


def test_process_that_missed_checkpoints_of_others_signs_the_next(tmp_path: Path, settings: Any) -> None:
    ledger, signer = grown(8)
    settings.VAR_DIR = tmp_path / "another"
    settings.VAR_DIR.mkdir()
    ledger.all = Texts(8).all + ledger.all[8:] + Texts(700).all
    make_signer(ledger).sign(after(4))
    assert signer.sign(after(6)) is not None


def test_checkpoint_of_another_history_is_noticed_by_each_process(tmp_path: Path, settings: Any) -> None:
    ledger, signer = grown()
    put_back()
    ledger.all = Texts(310).all
    # A host that has seen nothing signs it.
    settings.VAR_DIR = tmp_path / "another"
    settings.VAR_DIR.mkdir()
    make_signer(ledger).sign(after(4))
    with pytest.raises(Forked):
        signer.check(310)
    with pytest.raises(Forked):
        signer.look(after(5))


def test_stored_tree_that_was_altered_is_not_signed(known_file: Path) -> None:
    ledger, _ = grown()
    known_file.unlink()
    tile = Tile.objects.get(level=0, number=0)
    tile.hashes = tile.hashes[:40] + tile.hashes[80:120] + tile.hashes[80:]
    tile.save()
    Tile.objects.filter(level=1).delete()
    ledger.all.append("later")
    with pytest.raises(Forked):
        make_signer(ledger).sign(after(4))


def test_file_of_another_log_is_no_matter(known_file: Path) -> None:
    ledger, _ = grown()
    log, _, checkpoint = known_file.read_text().partition("\n")
    known_file.write_text(f"{log}x\n{Checkpoint(checkpoint, 9_999, merkle.EMPTY_ROOT)}")
    ledger.all.append("later")
    make_signer(ledger).look(after(4))
    assert signed_sizes() == [300, 302, 303]


@pytest.mark.parametrize("is_signed", [False, True])
@pytest.mark.parametrize("content", [None, b"key\nbroken", b"\xff"], ids=["folder", "text", "bytes"])
def test_nothing_is_signed_or_written_while_the_file_cannot_be_read(
    known_file: Path, content: bytes | None, *, is_signed: bool
) -> None:
    ledger = grown()[0] if is_signed else Texts(302)
    known_file.unlink(missing_ok=True)
    known_file.mkdir() if content is None else known_file.write_bytes(content)
    signer = make_signer(ledger)
    with pytest.raises(Forked):
        signer.check(302)
    with pytest.raises(Forked):
        signer.sign(after(4))
    known_file.rmdir() if content is None else known_file.unlink()
    signer.check(302)


def test_log_whose_entries_are_lost_is_followed_by_one_that_names_its_end() -> None:
    ledger, _ = grown()
    put_back()
    ledger.all = Texts(301).all
    signer = make_signer(ledger)
    last = signer.known()
    assert last is not None
    key = keyring.begin_log(last, after(4)).key
    signer.check(301)
    assert LogKey.objects.earliest("pk").signs_until == after(4)
    signed = signer.sign(after(4))
    assert signed is not None
    assert key.name == f"localhost/ledger/after-302-{last.root.hex()[:16]}"
    assert signed.checkpoint.origin == key.name
    assert set(Note.read(signed.note.encode()).signed_by(each.key for each in LogKey.objects.all())) == {key}
    ledger.all.append("later")
    assert make_signer(ledger).look(after(6)) == after(6) + AGAIN
    assert signed_sizes() == [300, 301, 302]
    again = keyring.begin_log(signed.checkpoint, after(8))
    assert again.origin.count("/after-") == 1
