"""`verify_ledger` compares the entries with every checkpoint that was signed of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from signals_feed.ledger.guards import put_up_triggers, take_down_triggers
from signals_feed.ledger.ledger import LedgerEntry, LedgerHead, signer
from signals_feed.ledger.verify import verify
from signals_feed.models import Evidence, Signal
from tests.signals_feed.published_signals import make_published
from transparency.keyring import keyring
from transparency.models import SignedCheckpoint
from transparency.remembered import Forked

from .ledgers import after, lose_checkpoints

pytestmark = [pytest.mark.django_db, pytest.mark.services, pytest.mark.usefixtures("known_file")]


def make_signed(count: int = 3) -> list[Signal]:
    """A checkpoint before the first signal and after each."""
    signer.sign(after(0))
    signals = []
    for number in range(count):
        signals.append(make_published())
        signer.sign(after(2 + 2 * number))
    return signals


def rewrite(signals: list[Signal]) -> None:
    """All that follows from one changed price, with every hash."""
    Signal.objects.filter(pk=signals[1].pk).update(stop_loss="1.083")
    head = LedgerEntry.objects.get(position=1).hash
    for entry in LedgerEntry.objects.filter(position__gt=1).order_by("position"):
        text = entry.payload.replace('"1.081"', '"1.083"') if entry.position == 2 else entry.payload
        hash_ = hashlib.sha256((head + text).encode()).hexdigest()
        LedgerEntry.objects.filter(pk=entry.pk).update(payload=text, previous=head, hash=hash_)
        head = hash_
    LedgerHead.objects.update(hash=head)


def lose(signals: list[Signal]) -> None:
    """The last signal with all of its traces."""
    LedgerEntry.objects.filter(position=3).delete()
    LedgerHead.objects.update(position=2, hash=LedgerEntry.objects.get(position=2).hash)
    Evidence.objects.filter(signal=signals[2]).delete()
    Signal.objects.filter(pk=signals[2].pk).delete()


def altering(**values: Any) -> Callable[[list[Signal]], object]:
    """The second checkpoint."""
    return lambda _: SignedCheckpoint.objects.filter(size=1).update(**values)


def sign_by_hand(_: list[Signal]) -> None:
    """With the key of another log."""
    first = SignedCheckpoint.objects.get(size=1)
    lines = SignedCheckpoint.objects.get(size=2).note.split("\n")
    first.note = "\n".join([*first.note.split("\n")[:4], *lines[4:]])
    first.save()


@pytest.mark.parametrize(
    ("forge", "entries", "sentence"),
    [
        (rewrite, 1, "The first 2 entries are not those that were signed"),
        (lose, 2, "3 entries were signed, and there are 2"),
        (altering(size=4), 3, "4 entries were signed, and there are 3"),
        (altering(note="nothing"), 0, "The checkpoint of 1 entries was altered"),
        (sign_by_hand, 0, "The checkpoint of 1 entries was altered"),
    ],
)
def test_forged_history_is_named(
    forge: Callable[[list[Signal]], object], entries: int, sentence: str
) -> None:
    signals = make_signed()
    assert verify().fault == ""
    take_down_triggers()
    forge(signals)
    put_up_triggers()
    verdict = verify()
    assert verdict.fault.startswith(sentence)
    assert verdict.entries == entries


def test_checkpoint_at_another_size_is_named() -> None:
    make_signed()
    lose_checkpoints(after=0)
    take_down_triggers()
    SignedCheckpoint.objects.update(size=2)
    put_up_triggers()
    assert verify().fault.startswith("The checkpoint of 2 entries was altered")


def test_what_a_log_before_signed_of_lost_entries_is_no_fault() -> None:
    signals = make_signed()
    take_down_triggers()
    lose(signals)
    put_up_triggers()
    keyring.begin_log(signer.known() or SignedCheckpoint.objects.latest("size").checkpoint, after(9))
    signer.sign(after(9))
    assert verify().fault == ""


def test_nothing_is_published_in_a_ledger_that_lost_signed_entries() -> None:
    signals = make_signed()
    take_down_triggers()
    lose(signals)
    put_up_triggers()
    with pytest.raises(Forked):
        make_published()
    keyring.begin_log(signer.known() or SignedCheckpoint.objects.latest("size").checkpoint, after(9))
    make_published()
