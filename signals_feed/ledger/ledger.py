"""The ledger: every publication, cancellation and closure, chained by hash in commit order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, models, transaction
from django.db.models import Q

from accounts.models import PUBLISHER

from .published_name import PublishedName

Payload = dict[str, Any]
FROZEN_TERMS = (
    *("direction", "entry", "stop_loss", "take_profit", "tradable_price"),
    *("published_at", "expires_at"),
)
RESULT = (
    *("close_price", "closed_at", "close_reason"),
    *("pnl", "pnl_percent", "pnl_r", "best_r", "worst_r"),
)
SHOWN = (
    *("source", "rule", "at", "bid", "ask", "epoch", "seq"),
    *("bid_open", "bid_low", "bid_high", "ask_low", "ask_high", "best", "worst"),
)


def canonical(payload: Payload | str) -> str:
    return json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value as text that does not depend on the database it went through."""
    if isinstance(value, Decimal):
        return plain_number(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return str(value) if isinstance(value, UUID) else value


def plain_number(value: Decimal) -> str:
    """Without an exponent, trailing zeros or a signed zero."""
    return f"{value.normalize() + 0:f}"


def publication_payload(signal: Any, entry: Any) -> Payload:
    """From the rows of a signal and its evidence."""
    who = {"user_id": signal.user_id, "instrument_id": signal.instrument_id}
    return who | _values(signal, FROZEN_TERMS) | {"evidence": evidence_payload(entry)}


def published_names(signal: Any) -> Payload:
    """The publisher by a pseudonym, because nobody can take a name out again; the symbol as it is now."""
    return {"user": f"{PUBLISHER}{signal.user_id}", "symbol": signal.instrument.symbol}


def closure_payload(signal: Any, exit_: Any) -> Payload:
    return _values(signal, RESULT) | {"evidence": evidence_payload(exit_)}


def cancellation_payload(signal: Any) -> Payload:
    return _values(signal, ("cancel_reason", "cancelled_at"))


def evidence_payload(evidence: Any) -> Payload | None:
    """None for a signal older than the evidence."""
    if evidence is None:
        return None
    return {name: value for name, value in _values(evidence, SHOWN).items() if value is not None}


def _values(row: Any, names: tuple[str, ...]) -> Payload:
    return {name: plain(getattr(row, name)) for name in names}


FIRST_PREVIOUS_HASH = "0" * 64
"""Stands in the first entry for the hash of the one before it."""


class Fact(NamedTuple):
    """What an entry records, before it has a position."""

    kind: str
    signal: UUID
    payload: Payload


class LedgerHeadManager(models.Manager["LedgerHead"]):
    def now(self) -> LedgerHead:
        """The last entry's position and hash; position 0 before the first."""
        return self.filter(pk=1).first() or LedgerHead(pk=1, position=0, hash=FIRST_PREVIOUS_HASH)


class LedgerHead(models.Model):
    """The end of the ledger, so that a lost tail is noticed. One row, which only moves forward."""

    position = models.PositiveBigIntegerField()
    hash = models.CharField(max_length=64)

    objects = LedgerHeadManager()

    class Meta:
        constraints = (models.CheckConstraint(name="ledger_head_is_one_row", condition=Q(pk=1)),)

    def __str__(self) -> str:
        return f"{self.position}:{self.hash}"


class LedgerManager(models.Manager["LedgerEntry"]):
    def append(self, facts: Sequence[Fact]) -> None:
        """Call it in the transaction of the facts and after a control event, whose lock makes writers take
        turns: entries are then in commit order."""
        if not connection.in_atomic_block:
            raise transaction.TransactionManagementError("The ledger is written with the fact.")
        head = LedgerHead.objects.now()
        is_first = head.position == 0
        entries = []
        for fact in facts:
            position = head.position + 1
            about = {"position": position, "kind": fact.kind, "signal": str(fact.signal)}
            text = canonical(about | fact.payload)
            entry = LedgerEntry(
                position=position,
                kind=fact.kind,
                signal=fact.signal,
                payload=text,
                previous=head.hash,
                hash=chained(head.hash, text),
            )
            entries.append(entry)
            head.position, head.hash = entry.position, entry.hash
        self.bulk_create(entries)
        head.save(force_insert=is_first, force_update=not is_first)


class LedgerEntry(models.Model):
    """Written once: triggers refuse to change or delete it (trigger_rules.py)."""

    class Kind(models.TextChoices):
        PUBLISH = "publish"
        CLOSE = "close"
        CANCEL = "cancel"
        REMOVE = "remove", "the demo was taken away"

    position = models.BigIntegerField(primary_key=True)
    kind = models.CharField(max_length=7, choices=Kind)
    # No foreign key: the entry outlives the signal's row.
    signal = models.UUIDField()
    payload = models.TextField(help_text="Canonical JSON: sorted keys, no spaces.")
    previous = models.CharField(max_length=64)
    hash = models.CharField(max_length=64, help_text="SHA-256 of the previous hash and the payload.")

    objects = LedgerManager()

    class Meta:
        verbose_name_plural = "ledger entries"
        indexes = (models.Index(PublishedName("payload"), name="ledger_published_name"),)
        constraints = (
            models.UniqueConstraint(name="ledger_tells_a_fact_once", fields=("signal", "kind")),
            models.CheckConstraint(
                name="ledger_kind_is_known", condition=Q(kind__in=("publish", "close", "cancel", "remove"))
            ),
        )

    def __str__(self) -> str:
        return f"{self.position} {self.kind} {self.signal}"


def chained(previous: str, payload: str) -> str:
    return hashlib.sha256((previous + payload).encode()).hexdigest()
