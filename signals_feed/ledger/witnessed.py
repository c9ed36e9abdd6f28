"""Which signals a witness saw before they ended, and so before anybody knew their results."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db.models import OuterRef, Subquery

from core.times import read_iso
from signals_feed.record import CLOSE, PUBLISH
from transparency.models import SignedCheckpoint

from .ledger import LedgerEntry


def witnessed_before_end(entries: Collection[LedgerEntry]) -> dict[UUID, bool | None]:
    """Of the signals that these publish or close. None for one that is active, until a witness sees it."""
    of = {kind: {each.signal: each for each in entries if each.kind == kind} for kind in (PUBLISH, CLOSE)}
    seen = _seen_at([each.position for each in of[PUBLISH].values()])
    return {pk: _is_before(seen.get(each.position), of[CLOSE].get(pk)) for pk, each in of[PUBLISH].items()}


def _seen_at(positions: Collection[int]) -> dict[int, datetime]:
    """When a witness first cosigned a ledger with these entries."""
    found: dict[int, datetime] = {}
    entries = LedgerEntry.objects.filter(position__in=positions)
    for witness in settings.WITNESSES:
        covering = SignedCheckpoint.objects.of_current_log().filter(
            cosignatures__witness=str(witness.key), size__gte=OuterRef("position")
        )
        first = covering.order_by("size").values("cosignatures__first_at")[:1]
        for position, at in entries.annotate(at=Subquery(first)).values_list("position", "at"):
            if at is not None:
                found[position] = min(at, found.get(position, at))
    return found


def _is_before(seen_at: datetime | None, close: LedgerEntry | None) -> bool | None:
    if close is None:
        return None if seen_at is None else True
    written = json.loads(close.payload)
    # Entries of before do not say when they were written.
    return seen_at is not None and seen_at < read_iso(written.get("written", written["closed_at"]))
