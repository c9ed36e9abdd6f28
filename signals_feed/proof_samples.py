"""The proof and the ledger that the reference shows: of the closed signal in samples.py."""

from __future__ import annotations

import hashlib
from typing import Any

from .samples import CLOSED

NOBODY = "0" * 64
PAYLOAD = (
    '{"direction":"sell","entry":"2651.4","kind":"publish","position":1,'
    f'"signal":"{CLOSED["id"]}","stop_loss":"2660.4","take_profit":"2633.4"}}'
)
HASH = hashlib.sha256((NOBODY + PAYLOAD).encode()).hexdigest()


def number(name: str, exact: str) -> dict[str, Any]:
    return {"name": name, "value": float(exact), "exact": exact}


def step(name: str, formula: str, exact: str, decimals: int | None = None) -> dict[str, Any]:
    return {**number(name, exact), "formula": formula, "decimals": decimals}


ENTRY_EVIDENCE = {
    "source": "tick",
    "rule": "quote",
    "rule_text": "A buyer pays the ask and a seller gets the bid; the worse of this and the entry counts.",
    "time": "2026-11-19T15:40:02.611Z",
    "epoch": "k3v9x2q7",
    "seq": 918_204,
    "bid": 2651.4,
    "ask": 2651.62,
}
EXIT_EVIDENCE = {
    "source": "tick",
    "rule": "target",
    "rule_text": "The target fills at its own price.",
    "time": "2026-11-20T08:31:17.004Z",
    "epoch": "k3v9x2q7",
    "seq": 1_204_511,
    "bid": 2633.11,
    "ask": 2633.33,
    "best": 2633.4,
    "worst": 2658.1,
}
PROOF = {
    **{name: CLOSED[name] for name in ("id", "user", "symbol", "direction", "status")},
    "entry": {"time": CLOSED["timestamp"], "evidence": ENTRY_EVIDENCE},
    "exit": {
        "time": CLOSED["closed_at"],
        "close_reason": "take_profit",
        "cancel_reason": None,
        "evidence": EXIT_EVIDENCE,
    },
    "inputs": [
        number("entry", "2651.4"),
        number("stop_loss", "2660.4"),
        number("take_profit", "2633.4"),
        number("entry_bid", "2651.4"),
        number("entry_ask", "2651.62"),
        number("exit_bid", "2633.11"),
        number("exit_ask", "2633.33"),
        number("exit_best", "2633.4"),
        number("exit_worst", "2658.1"),
        number("pip_size", "0.01"),
    ],
    "steps": [
        step("tradable_price", "entry_bid", "2651.4"),
        step("paid", "min(entry, tradable_price)", "2651.4"),
        step("risk", "abs(paid - stop_loss)", "9"),
        step("close_price", "take_profit", "2633.4"),
        step("gained", "paid - close_price", "18"),
        step("pnl", "gained / pip_size", "1800.0", 1),
        step("pnl_percent", "gained / paid * 100", "0.6789", 4),
        step("pnl_r", "gained / risk", "2.0000", 4),
        step("best_r", "(paid - exit_best) / risk", "2.0000", 4),
        step("worst_r", "(paid - exit_worst) / risk", "-0.7444", 4),
    ],
    "ledger": [
        {"position": 411, "kind": "publish", "hash": hashlib.sha256(b"411").hexdigest()},
        {"position": 430, "kind": "close", "hash": hashlib.sha256(b"430").hexdigest()},
    ],
}
LEDGER = {
    "head": {"position": 431, "hash": hashlib.sha256(b"431").hexdigest()},
    "items": [
        {
            "position": 1,
            "kind": "publish",
            "signal": CLOSED["id"],
            "payload": PAYLOAD,
            "previous": NOBODY,
            "hash": HASH,
        }
    ],
    "count": 1,
}
