"""Entries that are written past the service: as the version before writes them, and as a forger does who has
the login of the service's own database."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction

from core.times import epoch_ms, read_iso
from instruments.models import Instrument
from signals_feed.ledger.ledger import (
    LedgerEntry,
    LedgerHead,
    canonical,
    chained,
    database_clock,
    part_of,
    plain,
    publication_payload,
)
from signals_feed.models import Evidence, Signal
from signals_feed.record import OWN_TIME
from tests.factories import make_instrument, make_user
from tests.signals_feed.published_signals import ASK, BID, TERMS


def later(now: str, seconds: float) -> str:
    return str(plain(datetime.fromisoformat(now) + timedelta(seconds=seconds)))


def add(kind: str, signal: UUID, /, part: str | None = None, **facts: Any) -> LedgerEntry:
    """The next entry, with nothing in its payload that is not told here."""
    head = LedgerHead.objects.now()
    payload = {"position": head.position + 1, "kind": kind, "signal": str(signal)} | facts
    text = canonical(payload)
    with transaction.atomic():
        entry = LedgerEntry.objects.create(
            position=head.position + 1,
            kind=kind,
            signal=signal,
            part=part_of(kind, payload) if part is None else part,
            payload=text,
            previous=head.hash,
            hash=chained(head.hash, text),
        )
        LedgerHead.objects.update_or_create(pk=1, defaults={"position": entry.position, "hash": entry.hash})
    return entry


def add_now(
    kind: str,
    signal: UUID,
    /,
    part: str | None = None,
    *,
    dated_s: float = 0,
    written_s: float = 0,
    **facts: Any,
) -> LedgerEntry:
    """Dated and written as many seconds from now."""
    now = database_clock()
    dated = {OWN_TIME[kind]: later(now, dated_s)} if kind in OWN_TIME else {}
    return add(kind, signal, part, **({"written": later(now, written_s)} | dated | facts))


def publish_by_rules_2(*, dated_s: float = 0, written_s: float = 0, **facts: Any) -> Signal:
    columns = {"is_demo": facts.get("demo", False), "rules": 2, "rank_unit": Decimal("0.0032")}
    instrument = Instrument.objects.filter(symbol="EURUSD").first() or make_instrument()
    user, now = facts.pop("by", None) or make_user(), database_clock()
    at = read_iso(later(now, dated_s))
    signal = Signal(instrument=instrument, user=user, direction="buy", published_at=at, **columns)
    for name, price in TERMS.items():
        setattr(signal, name, Decimal(price))
    signal.save(force_insert=True)
    shown: dict[str, Any] = {"at": at, "bid": BID, "ask": ASK, "epoch": "e", "seq": 7, "feed": "push:7"}
    shown |= {"simulated": False, "accepted_ms": epoch_ms(at), "settled": True, "unsettled_ms": 0}
    shown |= {"signal": signal, "kind": "entry", "source": "tick", "rule": "quote"}
    entry = Evidence.objects.create(**shown)
    kept = {"rules": 2, "demo": False, "rank_unit": "0.0032", "pip_size": "0.0001", "stale_ms": 60_000}
    kept |= {"symbol": instrument.symbol, "written": later(now, written_s)}
    add("publish", signal.pk, **(publication_payload(signal, entry) | kept | facts))
    return signal
