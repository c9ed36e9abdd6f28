"""The ledger: every fact about signals, chained by hash in commit order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from django.db import IntegrityError, connection, models, transaction
from django.db.models import CharField, Func, OuterRef, Q, Subquery

from accounts.models import PUBLISHER
from core.database import CompiledQuery, ask, database
from signals_feed.contradictions import WRITTEN_WITHIN_MS
from signals_feed.record import plain_number
from transparency.signing import Following, Signer

# What an entry of the ledger calls its publisher, as the database finds it in the payload.
IN_POSTGRESQL = r"""UPPER(SUBSTRING(%(expressions)s FROM '"user":("(?:[^"\\]|\\.)*")'))"""
IN_SQLITE = """
UPPER(CASE WHEN JSON_VALID(%(expressions)s) THEN JSON_QUOTE(JSON_EXTRACT(%(expressions)s, '$.user')) END)
"""


class PublishedName(Func):
    """As JSON, in capitals. It does not fail for any payload, because that would block all writing;
    `verify_ledger` checks whether the payload is one of ours."""

    output_field = CharField()
    arity = 1

    def as_postgresql(self, compiler: Any, connection: Any, **extra_context: Any) -> Any:
        return self.as_sql(compiler, connection, template=IN_POSTGRESQL, **extra_context)

    def as_sqlite(self, compiler: Any, connection: Any, **extra_context: Any) -> Any:
        return self.as_sql(compiler, connection, template=IN_SQLITE.strip(), **extra_context)


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
# Of ticks, unless unknown.
SHOWN_OF_TICKS = ("feed", "simulated", "accepted_ms", "settled", "unsettled_ms")


def canonical(payload: Payload | str) -> str:
    return json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value as text that does not depend on the database it went through."""
    if isinstance(value, Decimal):
        return plain_number(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return str(value) if isinstance(value, UUID) else value


def publication_payload(signal: Any, entry: Any) -> Payload:
    """From the rows of a signal and its evidence."""
    who = {"user_id": signal.user_id, "instrument_id": signal.instrument_id}
    return who | _values(signal, FROZEN_TERMS) | {"evidence": evidence_payload(entry)}


def published_names(signal: Any) -> Payload:
    """The publisher by a pseudonym, because a name could never be removed again; the symbol as it is now."""
    return {"user": f"{PUBLISHER}{signal.user_id}", "symbol": signal.instrument.symbol}


def closure_payload(signal: Any, exit_: Any) -> Payload:
    return _values(signal, RESULT) | {"evidence": evidence_payload(exit_)}


def cancellation_payload(signal: Any) -> Payload:
    return _values(signal, ("cancel_reason", "cancelled_at"))


def evidence_payload(evidence: Any) -> Payload | None:
    """None for a signal older than the evidence."""
    if evidence is None:
        return None
    shown = _values(evidence, SHOWN)
    shown |= {name: value for name in SHOWN_OF_TICKS if (value := getattr(evidence, name)) != ""}
    return {name: value for name, value in shown.items() if value is not None}


def fill_payload(signal: Any, fill: Any) -> Payload:
    return _values(signal, ("fill_price",)) | {"evidence": evidence_payload(fill)}


def _values(row: Any, names: tuple[str, ...]) -> Payload:
    return {name: plain(getattr(row, name)) for name in names}


NO_SIGNAL = UUID(int=0)
"""Of a day of the archive."""
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


# As many as surely are written soon after the clock was read.
AT_ONCE = 100
# The previous version writes entries without `written`; never this many between two of ours.
MOST_WITHOUT = 10_000
SOON_S = 0.8 * WRITTEN_WITHIN_MS / 1_000


def database_clock() -> str:
    """As the ledger writes times."""
    return str(plain(ask(database().clock)))


class LedgerManager(models.Manager["LedgerEntry"]):
    def append(self, facts: Sequence[Fact]) -> None:
        """Call it in the transaction of the facts and after a control event, whose lock makes writers take
        turns: entries are then in commit order. Raises Forked if entries that were signed are lost."""
        if not connection.in_atomic_block:
            raise transaction.TransactionManagementError("The ledger is written with the fact.")
        if not facts:
            # Its head only moves forward.
            return
        found = ledger_end().rows()
        position, hash_, last = found[0] if found else (0, FIRST_PREVIOUS_HASH, "")
        signer.check(position)
        head, is_first = LedgerHead(pk=1, position=position, hash=hash_), position == 0
        written = json.loads(last or "{}").get("written") or self._written_before(position)
        for start in range(0, len(facts), AT_ONCE):
            entries, written = self._write(facts[start : start + AT_ONCE], head, written)
            head.position, head.hash = entries[-1].position, entries[-1].hash
        head.save(force_insert=is_first, force_update=not is_first)

    def _written_before(self, position: int) -> str:
        """Empty before the first entry that says it."""
        telling = self.filter(position__gt=position - MOST_WITHOUT, payload__contains='"written":')
        payload = telling.order_by("-position").values_list("payload", flat=True).first()
        return "" if payload is None else str(json.loads(payload).get("written", ""))

    def _write(self, facts: Sequence[Fact], head: LedgerHead, last: str) -> tuple[list[LedgerEntry], str]:
        """And when. The database refuses what a machine that stood still writes too late: then once more."""
        while True:
            written = max(database_clock(), last)
            entries = list(_entries(facts, head, written))
            try:
                with transaction.atomic():
                    self.bulk_create(entries)
            except IntegrityError:
                if seconds_between(written, database_clock()) <= SOON_S:
                    raise
            else:
                return entries, written


@cache
def ledger_end() -> CompiledQuery:
    """The head and the text of its entry: before each fact is written it is asked."""
    last = LedgerEntry.objects.filter(position=OuterRef("position")).values("payload")
    return CompiledQuery(LedgerHead.objects.values_list("position", "hash", Subquery(last)))


def _entries(facts: Sequence[Fact], head: LedgerHead, written: str) -> Iterator[LedgerEntry]:
    position, previous = head.position, head.hash
    for fact in facts:
        position += 1
        about = {"position": position, "kind": fact.kind, "signal": str(fact.signal), "written": written}
        text = canonical(about | fact.payload)
        entry = LedgerEntry(
            position=position,
            kind=fact.kind,
            signal=fact.signal,
            part=part_of(fact.kind, fact.payload),
            payload=text,
            previous=previous,
            hash=chained(previous, text),
        )
        yield entry
        previous = entry.hash


def part_of(kind: str, payload: Payload) -> str:
    """What tells the arms of a signal, and the days of the archive, apart."""
    if kind == LedgerEntry.Kind.ARM:
        return f"{payload.get('for')}:{payload.get('number')}"
    return str(payload.get("day")) if kind == LedgerEntry.Kind.ARCHIVE else ""


def seconds_between(one: str, other: str) -> float:
    return (datetime.fromisoformat(other) - datetime.fromisoformat(one)).total_seconds()


class LedgerEntry(models.Model):
    """Written once: triggers refuse to change or delete it (trigger_rules.py)."""

    class Kind(models.TextChoices):
        PUBLISH = "publish"
        ARM = "arm", "the engine begins to look for a tick"
        FILL = "fill"
        CLOSE_REQUEST = "close_request", "the publisher asks to close"
        CLOSE = "close"
        CANCEL = "cancel"
        REMOVE = "remove", "the demo was taken away"
        ARCHIVE = "archive", "a day of the archive was sealed"

    position = models.BigIntegerField(primary_key=True)
    kind = models.CharField(max_length=13, choices=Kind)
    # No foreign key: the entry outlives the signal's row.
    signal = models.UUIDField(help_text="All zeros for a day of the archive.")
    part = models.CharField(
        max_length=20,
        blank=True,
        db_default="",
        help_text="What an arm is for, and its number; the day of an archive.",
    )
    payload = models.TextField(help_text="Canonical JSON: sorted keys, no spaces.")
    previous = models.CharField(max_length=64)
    hash = models.CharField(max_length=64, help_text="SHA-256 of the previous hash and the payload.")

    objects = LedgerManager()

    class Meta:
        verbose_name_plural = "ledger entries"
        indexes = (models.Index(PublishedName("payload"), name="ledger_published_name"),)
        constraints = (
            models.UniqueConstraint(name="ledger_tells_a_part_once", fields=("signal", "kind", "part")),
            models.CheckConstraint(
                name="ledger_kind_is_known",
                condition=Q(
                    kind__in=("publish", "fill", "close_request", "close", "cancel", "remove"), part=""
                )
                | (Q(kind__in=("arm", "archive")) & ~Q(part="")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.position} {self.kind} {self.signal}"


def chained(previous: str, payload: str) -> str:
    return hashlib.sha256((previous + payload).encode()).hexdigest()


# The ledger as the log of checkpoints reads it: the texts of its entries are the leaves of a tree.
class LedgerTexts:
    def count(self) -> int:
        return LedgerHead.objects.now().position

    def texts(self, after: int, upto: int) -> Iterable[str]:
        entries = LedgerEntry.objects.filter(position__gt=after, position__lte=upto).order_by("position")
        return entries.values_list("payload", flat=True)


signer = Signer(LedgerTexts())
following = Following(signer)
