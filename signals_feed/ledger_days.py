"""The ledger by day: its head at the end of a day, and the days of the archive that it seals."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from django.db import transaction

from core.events.outbox import ControlEvent
from core.times import read_iso

from .ledger.ledger import AT_ONCE, FIRST_PREVIOUS_HASH, NO_SIGNAL, Fact, LedgerEntry, LedgerHead, signer
from .ledger.new_rules import are_due

# When what an entry records happened: the first of these that it, or its evidence, says.
TIMES = ("closed_at", "cancelled_at", "published_at", "at", "written")


class LedgerPosition(NamedTuple):
    position: int
    """0 before the first entry."""
    hash: str


def position_now() -> LedgerPosition:
    head = LedgerHead.objects.now()
    return LedgerPosition(head.position, head.hash)


def check_signed() -> None:
    """Raises Forked if the ledger lacks entries that were signed."""
    signer.check(position_now().position)


def position_before(end: datetime) -> LedgerPosition:
    """The last entry that records something from before then."""
    entries = LedgerEntry.objects.order_by("-position").values_list("position", "hash", "payload")
    for position, hash_, payload in entries.iterator(chunk_size=500):
        written = json.loads(payload)
        times = (written.get("evidence") or {}) | written
        at = next((times[name] for name in TIMES if times.get(name)), None)
        if at is not None and read_iso(at) < end:
            return LedgerPosition(position, hash_)
    return LedgerPosition(0, FIRST_PREVIOUS_HASH)


def is_in_ledger(known: LedgerPosition) -> bool:
    if known.position == 0:
        return known.hash == FIRST_PREVIOUS_HASH
    return LedgerEntry.objects.filter(position=known.position, hash=known.hash).exists()


def sealed_days() -> dict[str, str]:
    """The SHA-256 of each day's manifest."""
    entries = LedgerEntry.objects.filter(kind=LedgerEntry.Kind.ARCHIVE, signal=NO_SIGNAL)
    sealed = map(json.loads, entries.values_list("payload", flat=True))
    return {each["day"]: each["manifest_sha256"] for each in sealed}


def sealed_as(day: str) -> str:
    """The SHA-256 of its manifest; empty if it is not sealed."""
    entry = LedgerEntry.objects.filter(kind=LedgerEntry.Kind.ARCHIVE, signal=NO_SIGNAL, part=day).first()
    return "" if entry is None else str(json.loads(entry.payload)["manifest_sha256"])


def seal(digests: Mapping[str, str]) -> None:
    """Enters these days, each once, as soon as all processes know such entries. Raises Forked."""
    days = sorted(digests) if are_due() else []
    for start in range(0, len(days), AT_ONCE):
        with transaction.atomic():
            ControlEvent.objects.take_turn()
            known = sealed_days()
            facts = [
                Fact(LedgerEntry.Kind.ARCHIVE, NO_SIGNAL, {"day": day, "manifest_sha256": digests[day]})
                for day in days[start : start + AT_ONCE]
                if day not in known
            ]
            LedgerEntry.objects.append(facts)
