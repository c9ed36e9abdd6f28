"""Where the ledger stands, and where it stood at the end of a day: for copies that are kept elsewhere."""

import json
from datetime import datetime
from typing import NamedTuple

from core.times import read_iso

from .ledger.ledger import FIRST_PREVIOUS_HASH, LedgerEntry, LedgerHead

# When what an entry records happened, by its kind.
TIMES = ("closed_at", "cancelled_at", "published_at")


class LedgerPosition(NamedTuple):
    position: int
    """0 before the first entry."""
    hash: str


def position_now() -> LedgerPosition:
    head = LedgerHead.objects.now()
    return LedgerPosition(head.position, head.hash)


def position_before(end: datetime) -> LedgerPosition:
    """The last entry that records something from before then."""
    entries = LedgerEntry.objects.order_by("-position").values_list("position", "hash", "payload")
    for position, hash_, payload in entries.iterator(chunk_size=500):
        written = json.loads(payload)
        at = next((written[name] for name in TIMES if written.get(name)), None)
        if at is not None and read_iso(at) < end:
            return LedgerPosition(position, hash_)
    return LedgerPosition(0, FIRST_PREVIOUS_HASH)


def is_in_ledger(known: LedgerPosition) -> bool:
    if known.position == 0:
        return known.hash == FIRST_PREVIOUS_HASH
    return LedgerEntry.objects.filter(position=known.position, hash=known.hash).exists()
