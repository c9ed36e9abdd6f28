"""Where the ledger of signals ended on a day."""

import json
from datetime import date

from archive.manifests import LedgerAt
from core.times import read_iso
from signals_feed.ledger import FIRST_PREVIOUS_HASH, LedgerEntry

from .candles import span_of

# When what an entry records happened, by its kind.
TIMES = ("closed_at", "cancelled_at", "published_at")


def ledger_at_end_of(day: date) -> LedgerAt:
    """The last entry that records something of that day or of one before it."""
    _, end = span_of(day)
    entries = LedgerEntry.objects.order_by("-position").values_list("position", "hash", "payload")
    for position, hash_, payload in entries.iterator(chunk_size=500):
        written = json.loads(payload)
        at = next((written[name] for name in TIMES if written.get(name)), None)
        if at is not None and read_iso(at) < end:
            return LedgerAt(position, hash_)
    return LedgerAt(0, FIRST_PREVIOUS_HASH)
