"""What the ledger says of a fact: plain values, and one text for the same values everywhere. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

Payload = dict[str, Any]

TERMS = ("direction", "entry", "stop_loss", "take_profit", "tradable_price", "published_at", "expires_at")
RESULT = (
    *("close_price", "closed_at", "close_reason"),
    *("pnl", "pnl_percent", "pnl_r", "best_r", "worst_r"),
)
SHOWN = (
    *("source", "rule", "at", "bid", "ask", "epoch", "seq"),
    *("bid_open", "bid_low", "bid_high", "ask_low", "ask_high", "best", "worst"),
)
# As they were called then: people and symbols may be renamed, rows keep their numbers.
NAMES = ("user", "symbol")


def canonical(payload: Payload) -> str:
    return json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value as text that is the same whatever database it went through."""
    if isinstance(value, Decimal):
        # Neither 1E+2 nor trailing noughts, nor a nought with a sign.
        return f"{value.normalize() + 0:f}"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return str(value) if isinstance(value, UUID) else value


def published(signal: Any, entry: Any) -> Payload:
    """Of a signal's row and that of its evidence."""
    who = {"user_id": signal.user_id, "instrument_id": signal.instrument_id}
    return who | _values(signal, TERMS) | {"evidence": shown(entry)}


def closed(signal: Any, exit_: Any) -> Payload:
    return _values(signal, RESULT) | {"evidence": shown(exit_)}


def cancelled(signal: Any) -> Payload:
    return _values(signal, ("cancel_reason", "cancelled_at"))


def shown(evidence: Any) -> Payload | None:
    """None for a signal of a time when none was kept."""
    if evidence is None:
        return None
    return {name: value for name, value in _values(evidence, SHOWN).items() if value is not None}


def _values(row: Any, names: tuple[str, ...]) -> Payload:
    return {name: plain(getattr(row, name)) for name in names}
