"""The proof of a signal, and entries of the ledger, as clients get them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from accounts.api import iso_time

from . import proof
from .models import Evidence, LedgerEntry, LedgerHead, Signal
from .rules import RULES


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
    return {"value": float(value), "exact": proof.exact(value, decimals)}


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
