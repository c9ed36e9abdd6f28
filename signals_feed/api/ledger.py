"""GET /api/signals/{id}/proof and /api/signals/ledger: what it takes to check a result, and all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.http import HttpRequest

from accounts.viewset import KeyedViewSet
from core.contract.answers import Answer, iso_time
from core.contract.errors import NotFound
from core.contract.schema import describes
from core.plain_json import encode
from core.threads import in_thread_promptly
from signals_feed.judging.rules import RULES
from signals_feed.ledger import proof
from signals_feed.ledger.ledger import LedgerEntry, LedgerHead, plain_number
from signals_feed.models import Evidence, Signal

from .ledger_schemas import LedgerQuerySerializer, LedgerSerializer, ProofSerializer
from .signals import NO_SUCH_SIGNAL, uuid_of

PROOF = (
    "Everything that the result follows from: the quote at entry, what closed it, the rule, and the"
    " arithmetic in steps. Put the `exact` inputs into the formulas with decimal arithmetic, round where"
    " `decimals` says so, half away from zero, and you get every `exact` that stands there, `pnl` to the"
    " last digit."
)
LEDGER = (
    "Every publication, cancellation and closure in commit order, chained: `hash` is the SHA-256, in"
    " hexadecimal, of the UTF-8 bytes of `previous` followed by `payload`, exactly as they stand here, and"
    " `previous` is the `hash` of the entry before (64 noughts for the first). Read on with `after` = the"
    " last position you have. Keep a head: if the ledger ever shows another hash at its position, the past"
    " was altered."
)


class ProofViewSet(KeyedViewSet):
    @describes(
        "getSignalProof",
        ProofSerializer,
        "How a signal's result came about, to be computed again",
        tag="Signals",
        details=PROOF,
        refusals=[NotFound(NO_SUCH_SIGNAL)],
    )
    async def retrieve(self, request: HttpRequest, id: str) -> Answer:  # noqa: A002 - the name in the path
        body = await in_thread_promptly(read_proof, id)
        if body is None:
            raise NotFound(NO_SUCH_SIGNAL)
        return Answer(body)


class LedgerViewSet(KeyedViewSet):
    @describes(
        "listLedger",
        LedgerSerializer,
        "The ledger of signals, chained by hash",
        tag="Signals",
        details=LEDGER,
        query=[LedgerQuerySerializer],
        refused_queries=["limit=0", "after=-1"],
    )
    async def list(self, request: HttpRequest) -> Answer:
        wanted = self.parameters(request, LedgerQuerySerializer)
        return Answer(await in_thread_promptly(read_ledger, wanted["after"], wanted["limit"]))


def read_proof(signal_id: str) -> bytes | None:
    pk = uuid_of(signal_id)
    if pk is None:
        return None
    told = Signal.objects.select_related("user", "instrument").prefetch_related("evidence")
    signal = told.filter(pk=pk).first()
    if signal is None:
        return None
    return encode(describe_proof(signal, LedgerEntry.objects.filter(signal=pk)))


def read_ledger(after: int, limit: int) -> bytes:
    head = LedgerHead.objects.now()
    # What was added since the head was read is for the next page.
    entries = LedgerEntry.objects.filter(position__gt=after, position__lte=head.position).order_by("position")
    return encode(describe_ledger(head, list(entries[:limit])))


def describe_proof(signal: Signal, ledger: Iterable[LedgerEntry]) -> dict[str, Any]:
    """The signal comes with its instrument, user and evidence."""
    shown = {each.kind: each for each in signal.evidence.all()}
    entry, exit_ = shown.get(Evidence.Kind.ENTRY), shown.get(Evidence.Kind.EXIT)
    entries = sorted(ledger, key=lambda each: each.position)
    pip_size = pip_size_of(signal, entries)
    return {
        "id": str(signal.pk),
        "user": signal.user.get_username(),
        "symbol": signal.instrument.symbol,
        "direction": signal.direction,
        "status": signal.status,
        "entry": {"time": iso_time(signal.published_at), "evidence": describe_evidence(entry)},
        "exit": describe_exit(signal, exit_),
        "inputs": [
            {"name": name, **describe_number(value)}
            for name, value in proof.inputs(signal, entry, exit_, pip_size)
        ],
        "steps": [
            {
                "name": step.name,
                "formula": step.formula,
                **describe_number(step.value, step.decimals),
                "decimals": step.decimals,
            }
            for step in proof.steps(signal, entry, exit_)
        ],
        "ledger": [{"position": each.position, "kind": each.kind, "hash": each.hash} for each in entries],
    }


def pip_size_of(signal: Signal, ledger: Iterable[LedgerEntry]) -> Decimal:
    """What the result was computed with; the instrument's own for an open signal, and for very old ones."""
    for each in ledger:
        if each.kind == LedgerEntry.Kind.CLOSE:
            return Decimal(json.loads(each.payload).get("pip_size", signal.instrument.pip_size))
    return signal.instrument.pip_size


def describe_exit(signal: Signal, evidence: Evidence | None) -> dict[str, Any] | None:
    if signal.closed_at is None:
        return None
    return {
        "time": iso_time(signal.closed_at),
        "close_reason": signal.close_reason,
        # Staff's words, where they cancelled it.
        "cancel_reason": signal.cancel_reason or None,
        "evidence": describe_evidence(evidence),
    }


def describe_evidence(evidence: Evidence | None) -> dict[str, Any] | None:
    if evidence is None:
        return None
    prices = {name: getattr(evidence, name) for name in proof.QUOTED}
    return {
        "source": evidence.source,
        "rule": evidence.rule,
        "rule_text": RULES[evidence.rule],
        "time": iso_time(evidence.at),
        "epoch": evidence.epoch or None,
        "seq": evidence.seq or None,
        **{name: float(price) for name, price in prices.items() if price is not None},
    }


def describe_number(value: Decimal, decimals: int | None = None) -> dict[str, Any]:
    exact = plain_number(value) if decimals is None else f"{value:.{decimals}f}"
    return {"value": float(value), "exact": exact}


def describe_ledger(head: LedgerHead, entries: list[LedgerEntry]) -> dict[str, Any]:
    return {
        "head": {"position": head.position, "hash": head.hash},
        "items": [
            {
                "position": entry.position,
                "kind": entry.kind,
                "signal": str(entry.signal),
                "payload": entry.payload,
                "previous": entry.previous,
                "hash": entry.hash,
            }
            for entry in entries
        ],
        "count": len(entries),
    }
