"""Signs a checkpoint soon after the ledger has grown, and only if it extends the last one; a ledger that does
not is not written to either. Each serving process looks every second. `CheckpointCheck` compares the entries
of the ledger, from the first on, with every checkpoint."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import cache
from threading import Lock
from typing import Protocol

from django.db import transaction
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from core.background import BackgroundLoop
from core.database import UNANSWERED, CompiledQuery, database
from core.fault_log import LastingFault
from core.threads import in_thread
from transparency import merkle
from transparency.checkpoints import Checkpoint, Note, NoteRefused, sign
from transparency.keyring import KeysUnopened, keyring
from transparency.merkle import TILE_WIDTH, Frontier, Place, leaf_hash
from transparency.models import LogKey, Objection, SignedCheckpoint, Tile
from transparency.remembered import Forked, Remembered, remembered
from transparency.witnesses import witnesses

LEAST_APART = timedelta(seconds=2)
AGAIN = timedelta(hours=1)
# So that an old ledger does not keep a process busy for seconds.
MOST_AT_ONCE = 10_000
SIGNERS_LOCK = 7_424_002


class Entries(Protocol):
    """The ledger, whose texts are the leaves of the tree."""

    def count(self) -> int:
        """Of those that are committed."""

    def texts(self, after: int, upto: int) -> Iterable[str]:
        """Of the entries at these positions, the first of which is 1, in their order."""


class Signer:
    def __init__(self, entries: Entries, known: Remembered = remembered) -> None:
        self.entries, self._known = entries, known
        self._last_note = ""
        """That was seen to extend what is known."""
        self._turn = Lock()

    def look(self, now: datetime) -> datetime:
        """Signs if that is due, and says when it will be due again. Raises Forked."""
        last, is_behind = self._newest()
        if is_behind or self._due_at(last, now) <= now:
            last = self.sign(now) or SignedCheckpoint.objects.newest()
        return self._due_at(last, now)

    def check(self, count: int) -> None:
        """Raises Forked if a ledger of `count` entries does not extend what was signed."""
        found = newest_note().rows()
        size, note = found[0] if found else (0, "")
        is_behind = False
        if not note or note != self._last_note:
            last, is_behind = self._newest()
            size = last.size if last else 0
        if is_behind or count < size:
            raise Forked("The ledger lacks entries that were signed.")
        if objection := Objection.objects.against(count):
            raise Forked(str(objection))

    def _newest(self) -> tuple[SignedCheckpoint | None, bool]:
        """And whether this process knows a larger one. Raises Forked if it does not extend what is known."""
        with self._turn:
            # Before the database is asked, which has a checkpoint before any process knows it.
            known = self.known()
            last = SignedCheckpoint.objects.newest()
            if last is None or (known and known.size > last.size):
                return last, known is not None
            if last.note != self._last_note:
                self._check_last_tile(Tile.objects.read(merkle.tiles_for(last.size)), last.size)
                self._remember(last, known)
            return last, False

    def _due_at(self, last: SignedCheckpoint | None, now: datetime) -> datetime:
        # A clock that was set back does not keep everybody waiting.
        if last is None or last.signed_at > now:
            return now
        return last.signed_at + (LEAST_APART if self.entries.count() != last.size else AGAIN)

    def sign(self, now: datetime) -> SignedCheckpoint | None:
        """Raises Forked if the ledger does not extend what was signed. None if another process was first."""
        known, last = self.known(), SignedCheckpoint.objects.newest()
        signed = last.checkpoint if last else None
        signed_size = signed.size if signed else 0
        known_size = known.size if known else 0
        count = self.entries.count()
        if objection := Objection.objects.against(count):
            raise Forked(str(objection))
        size = max(known_size, min(count, signed_size + MOST_AT_ONCE))
        tiles = Tile.objects.read(merkle.tiles_for(signed_size) | merkle.tiles_for(known_size))
        self._check_last_tile(tiles, signed_size)
        changed = merkle.append(tiles, signed_size, self._leaves(signed_size, size))
        for each in (signed, known):
            if each and not is_extended(tiles, each):
                raise Forked(f"The ledger is not the one of which {each.size} entries were signed.")
        written = self._write(last, size, merkle.root(tiles, size), changed, now)
        if written is not None:
            self._newest()
        return written

    def known(self) -> Checkpoint | None:
        return known_checkpoint(self._known)

    def _remember(self, signed: SignedCheckpoint, known: Checkpoint | None) -> None:
        checkpoint = signed.checkpoint
        if known and not is_extended(Tile.objects.read(merkle.tiles_for(known.size)), known):
            raise Forked(f"The checkpoint of {checkpoint.size} entries does not extend that of {known.size}.")
        self._known.remember(checkpoint)
        self._last_note = signed.note

    def _check_last_tile(self, tiles: dict[Place, bytes], size: int) -> None:
        """That the last leaves are those of the entries that there are now; `verify_ledger` sees all."""
        after = max(0, size - 1) // TILE_WIDTH * TILE_WIDTH
        leaves = b"".join(self._leaves(after, size))
        if leaves and tiles.get(Place(0, after // TILE_WIDTH), b"")[: len(leaves)] != leaves:
            raise Forked(f"The last of {size} entries are not those that were signed.")

    def _leaves(self, after: int, upto: int) -> list[bytes]:
        leaves = [leaf_hash(text.encode()) for text in self.entries.texts(after, upto)]
        if len(leaves) != upto - after:
            raise Forked(f"Of the entries {after + 1} to {upto}, only {len(leaves)} are there.")
        return leaves

    @transaction.atomic
    def _write(
        self,
        last: SignedCheckpoint | None,
        size: int,
        root: bytes,
        changed: dict[Place, bytes],
        now: datetime,
    ) -> SignedCheckpoint | None:
        # One signer after the other, until the end of the transaction.
        database().lock(SIGNERS_LOCK)
        newest = SignedCheckpoint.objects.newest()
        if (newest and (newest.size, newest.signed_at)) != (last and (last.size, last.signed_at)):
            return None
        keys = keyring.signing_keys(now)
        text = str(Checkpoint(keys[-1].name, size, root))
        note = str(Note(text, tuple(sign(text, key) for key in keys)))
        Tile.objects.write(changed)
        if newest and newest.size == size:
            newest.note, newest.signed_at = note, now
            newest.save(update_fields=["note", "signed_at"])
            return newest
        about = {"origin": keys[-1].name, "size": size}
        return SignedCheckpoint.objects.create(**about, note=note, made_at=now, signed_at=now)


def known_checkpoint(known: Remembered = remembered) -> Checkpoint | None:
    """What this process knows besides the database."""
    log = LogKey.objects.of_current_log().first()
    return known.of(log.verifier if log else "")


@cache
def newest_note() -> CompiledQuery:
    """Before each fact is written it is asked."""
    newest = SignedCheckpoint.objects.of_current_log().order_by("-size")
    return CompiledQuery(newest.values_list("size", "note")[:1])


def is_extended(tiles: dict[Place, bytes], signed: Checkpoint) -> bool:
    try:
        return merkle.root(tiles, signed.size) == signed.root
    except KeyError:
        return False


logger = logging.getLogger(__name__)
LOOK_EVERY_S = 1.0


class Following:
    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self.fault = ""
        """Why nothing is signed; empty while all is well."""
        self._wait_s = LOOK_EVERY_S
        self._loop = BackgroundLoop(
            "checkpoints of the ledger",
            self.look,
            fault=LastingFault(logger, "No checkpoint of the ledger is signed", logging.ERROR),
            broke="A checkpoint of the ledger could not be signed",
            passing=(Forked, KeysUnopened, *UNANSWERED),
            after=self._wait,
            again=LOOK_EVERY_S,
        )
        self.start, self.stop = self._loop.start, self._loop.stop

    async def look(self) -> None:
        now = timezone.now()
        try:
            due_at = await in_thread(self._signer.look, now)
        except Exception as error:
            self.fault = str(error) or type(error).__name__
            raise
        self.fault = ""
        self._wait_s = min(LOOK_EVERY_S, max(0.0, (due_at - now).total_seconds()))

    async def _wait(self) -> None:
        await asyncio.sleep(self._wait_s)


class LogMetrics(Collector):
    def __init__(self, following: Following) -> None:
        self._following = following

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        text = "0 while no checkpoint can be signed; the log has the reason."
        yield GaugeMetricFamily("tickwire_ledger_is_signed", text, value=int(not self._following.fault))
        text = "Since a witness last cosigned a checkpoint, or since one was signed for the first time."
        age = GaugeMetricFamily("tickwire_witness_age_seconds", text, labels=("witness",))
        for link in witnesses.links:
            if link.cosigned_at is not None:
                age.add_metric((link.name,), (timezone.now() - link.cosigned_at).total_seconds())
        yield age


BATCH = 500


class CheckpointCheck:
    """Of the current log: what one before it signed, that one signed of entries that were lost."""

    def __init__(self) -> None:
        self._tree = Frontier()
        self._keys = [row.key for row in LogKey.objects.of_current_log()]
        self._signed = signed_in_order()
        self._next = next(self._signed, None)

    def add(self, text: str) -> str:
        """What of the checkpoints up to this entry does not hold; empty if all does."""
        fault = self._compare()
        self._tree.add(leaf_hash(text.encode()))
        return fault or self._compare()

    def end(self) -> str:
        fault = self._compare()
        if not fault and self._next is not None:
            return f"{self._next.size} entries were signed, and there are {self._tree.size}."
        return fault

    def _compare(self) -> str:
        signed = self._next
        if signed is None or signed.size != self._tree.size:
            return ""
        self._next = next(self._signed, None)
        try:
            is_signed = Note.read(signed.note.encode()).signed_by(self._keys)
        except NoteRefused:
            is_signed = {}
        if not is_signed or signed.checkpoint.size != signed.size:
            return f"The checkpoint of {signed.size} entries was altered: it is not what the log signed."
        if signed.checkpoint.root != self._tree.root():
            return (
                f"The first {signed.size} entries are not those that were signed: the ledger was rewritten."
            )
        return ""


def signed_in_order() -> Iterator[SignedCheckpoint]:
    """Those that there are when the first is asked for, a few hundred at a time."""
    signed = SignedCheckpoint.objects.of_current_log().order_by("size")
    newest, after = signed.last(), -1
    upto = newest.size if newest else after
    while batch := list(signed.filter(size__gt=after, size__lte=upto)[:BATCH]):
        yield from batch
        after = batch[-1].size
