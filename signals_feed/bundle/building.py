"""What goes into the bundle of a publisher, out of the ledger and its log."""

from __future__ import annotations

import fcntl
import json
import logging
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from io import BufferedReader
from pathlib import Path
from typing import IO
from uuid import UUID

from django.conf import settings
from django.db.models import Value
from django.db.models.functions import Upper
from django.utils import timezone

from accounts.models import PUBLISHER
from core.contract.errors import Overloaded
from core.fault_log import LastingFault
from core.times import epoch_ms, read_iso
from instruments.catalogue import catalogue
from market import runtime as market
from signals_feed.archive_access import archived
from signals_feed.ledger.ledger import LedgerEntry, PublishedName, canonical
from signals_feed.models import Signal
from signals_feed.record import CLOSE, PUBLISH
from transparency import merkle
from transparency.models import LogKey, SignedCheckpoint, Tile

from .writing import BundleCheckpoint, BundleEntry, BundleFacts, write_bundle

BATCH = 200
# Of a signal that is past its expiry: the tick that ends it may just have come.
JUST_NOW = timedelta(minutes=1)
WITHHELD, UNTRADED, ENDED = "withheld", "without a tradable tick since", "ended by now"


class BundleBuilder:
    def __init__(self, user_id: int, last: SignedCheckpoint) -> None:
        """The ledger as it was when the last checkpoint was signed."""
        self._user_id, self._last = user_id, last
        self._withheld = {facts.id for facts in catalogue.all() if facts.is_withheld}
        self._publications = self._find_publications()

    def write(self, file: IO[bytes]) -> None:
        keys = LogKey.objects.filter(origin=self._last.origin).order_by("pk")
        facts = BundleFacts(
            user_id=self._user_id,
            made_ms=epoch_ms(self._last.signed_at),
            keys=[*keys.values_list("verifier", flat=True), *(str(each.key) for each in settings.WITNESSES)],
            waits=self._waits(timezone.now()),
            checkpoints=[*self._extended(self._checkpoints())],
        )
        write_bundle(file, facts, self._entries(), archived.open_ticks())

    def _find_publications(self) -> list[LedgerEntry]:
        """By the pseudonym; version 0.1.0 wrote the name to the ledger."""
        publications = LedgerEntry.objects.filter(kind=PUBLISH, position__lte=self._last.size)
        name = Upper(Value(canonical(f"{PUBLISHER}{self._user_id}")))
        own = publications.filter(signal__in=Signal.objects.filter(user=self._user_id).values("pk"))
        named = publications.alias(publisher=PublishedName("payload")).filter(publisher=name)
        return sorted({*own, *named}, key=lambda each: each.position)

    def _entries(self) -> Iterator[list[BundleEntry]]:
        for start in range(0, len(self._publications), BATCH):
            batch = self._publications[start : start + BATCH]
            entries = LedgerEntry.objects.filter(signal__in=[each.signal for each in batch])
            entries = entries.filter(position__lte=self._last.size).order_by("position")
            tiles = Tile.objects.read(
                merkle.tiles_for(self._last.size, *(each.position - 1 for each in entries))
            )
            of: dict[UUID, list[BundleEntry]] = defaultdict(list)
            withheld = {each.signal for each in batch if instrument_of(each) in self._withheld}
            for each in entries:
                proof = merkle.inclusion_proof(tiles, each.position - 1, self._last.size)
                about = each.position, str(each.signal), each.payload, proof
                of[each.signal].append(BundleEntry(*about, each.signal in withheld))
            yield from of.values()

    def _checkpoints(self) -> list[SignedCheckpoint]:
        """The last one; and of each publication the last that a witness saw without it, and the first with
        it."""
        found = {self._last.size: self._last}
        own = SignedCheckpoint.objects.filter(origin=self._last.origin, size__lte=self._last.size)
        for witness in settings.WITNESSES:
            seen = own.filter(cosignatures__witness=str(witness.key))
            upto = 0
            for position in (each.position for each in self._publications):
                if position > upto:
                    without = seen.filter(size__lt=position).order_by("-size").first()
                    first = seen.filter(size__gte=position).order_by("size").first()
                    found |= {each.size: each for each in (without, first) if each is not None}
                    upto = self._last.size if first is None else first.size
        return [found[size] for size in sorted(found)]

    def _extended(self, checkpoints: Sequence[SignedCheckpoint]) -> Iterator[BundleCheckpoint]:
        before = 0
        for each in checkpoints:
            tiles = Tile.objects.read(merkle.tiles_for(each.size, max(0, before - 1)))
            proof = merkle.consistency_proof(tiles, before, each.size)
            yield BundleCheckpoint(each.with_cosignatures(newest=each is self._last), proof)
            before = each.size

    def _waits(self, now: datetime) -> dict[str, str]:
        """Why signals have no end in the bundle though they are past their expiry."""
        closes = LedgerEntry.objects.filter(
            kind=CLOSE, signal__in=[each.signal for each in self._publications]
        )
        ended = dict(closes.values_list("signal", "position"))
        found: dict[str, str] = {}
        for each in self._publications:
            is_ended = ended.get(each.signal, self._last.size + 1) <= self._last.size
            if not is_ended and (ends_at := read_iso(json.loads(each.payload)["expires_at"])) < now:
                why = ENDED if each.signal in ended else self._why_open(each, max(ends_at, now - JUST_NOW))
                found |= {str(each.signal): why} if why else {}
        return found

    def _why_open(self, publication: LedgerEntry, since: datetime) -> str:
        """Empty if there is no reason: it has had ticks."""
        if instrument_of(publication) in self._withheld:
            return WITHHELD
        quote = market.quote(json.loads(publication.payload)["symbol"])
        is_traded = quote is not None and quote.time_ms + quote.ahead_ms >= epoch_ms(since)
        return "" if is_traded else UNTRADED


def instrument_of(publication: LedgerEntry) -> int:
    return int(json.loads(publication.payload)["instrument_id"])


# The bundles that were built, as files of this installation: one of a publisher and checkpoint is built
# once, and no two at the same time.
logger = logging.getLogger(__name__)
unwritten = LastingFault(logger, "No bundle can be written")
FOLDER, LOCK = "bundles", "building.lock"
MOST_KEPT = 50
BUSY = "Another bundle is being built. Try again shortly."
NOT_SIGNED = "The ledger is not signed yet. Try again shortly."
AWAY = "Bundles cannot be built at the moment."


def open_bundle(user_id: int) -> BufferedReader:
    """Built if it is not there yet. Raises Overloaded."""
    last = newest_seen()
    if last is None:
        raise Overloaded(NOT_SIGNED, retry_after=2)
    # Cosignatures come a moment after the checkpoint, and it is signed again where the ledger does not grow.
    about = user_id, last.pk, epoch_ms(last.signed_at), last.cosignatures.count()
    path = Path(settings.VAR_DIR) / FOLDER / f"{'-'.join(map(str, about))}.zip"
    try:
        if not path.exists():
            with turn(path.parent):
                build(path, BundleBuilder(user_id, last))
        file = path.open("rb")
    except OSError as error:
        unwritten.tell(error)
        raise Overloaded(AWAY, retry_after=60) from error
    unwritten.over()
    return file


def newest_seen() -> SignedCheckpoint | None:
    """By a witness, or else the newest: so a bundle relies on the operator's word alone only if it must."""
    own = SignedCheckpoint.objects.of_current_log()
    keys = [str(each.key) for each in settings.WITNESSES]
    seen = own.filter(cosignatures__witness__in=keys).order_by("-size").first() if keys else None
    return seen or SignedCheckpoint.objects.newest()


@contextmanager
def turn(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with folder.joinpath(LOCK).open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Overloaded(BUSY, retry_after=2) from None
        yield


def build(path: Path, builder: BundleBuilder) -> None:
    draft = path.with_suffix(".draft")
    try:
        with draft.open("wb") as file:
            builder.write(file)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    # One that is being sent stays readable until it is sent.
    newest_first = sorted(path.parent.glob("*.zip"), key=lambda each: -each.stat().st_mtime_ns)
    of_before = [each for each in newest_first if each.name.startswith(f"{path.name.partition('-')[0]}-")][1:]
    for each in {*of_before, *newest_first[MOST_KEPT:]}:
        each.unlink()
