"""Signals by rules 2, as the engine arms, fills and closes them, step by step; each record holds."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

from accounts.models import User
from core.times import moment
from signals_feed.exits import in_r, result
from signals_feed.ledger.ledger import (
    LedgerEntry,
    cancellation_payload,
    closure_payload,
    fill_payload,
    plain,
)
from signals_feed.models import Evidence, Signal
from signals_feed.record import ms_of
from tests.signals_feed.ledger.by_hand import add, add_now, publish_by_rules_2

ARM: dict[str, Any] = {"epoch": "e", "seq": 7, "wait_ms": 1_000, "unsettled_ms": 0}
BID, ASK = Decimal("1.0843"), Decimal("1.0844")


def make_waiting(by: User | None = None) -> Signal:
    """A buy of EURUSD at 1.0842, armed."""
    signal = publish_by_rules_2(by=by, number=1, pip_size="0.0001", stale_ms=60_000)
    arm(signal, "fill")
    return signal


def make_filled(
    by: User | None = None,
    feed: str = "kraken",
    price: Decimal = ASK,
    bid: Decimal = BID,
    later_ms: int = 0,
    **seen: Any,
) -> Signal:
    """At 1.0844, and so at a worse price than its entry; or as a forger has it."""
    signal = make_waiting(by)
    evidence = tick_of(signal, "fill", "fill", bid, ASK, feed, later_ms, **seen)
    change(signal, fill_price=price, filled_at=evidence.at)
    add_now("fill", signal.pk, **fill_payload(signal, evidence))
    return signal


def reach_target(signal: Signal, bid: Decimal = Decimal("1.0901"), later_ms: int = 0) -> Signal:
    """Or so a forger says who names a lower bid."""
    feed, reached = signal.evidence.get(kind="fill").feed, {"best": signal.take_profit, "worst": BID}
    evidence = tick_of(signal, "exit", "target", bid, bid, feed, later_ms, **reached)
    return end_at_target(signal, evidence, evidence.at)


def end_at_target(signal: Signal, evidence: Evidence, at: datetime) -> Signal:
    target, terms = signal.take_profit, (signal.direction, signal.entry, signal.stop_loss, ASK)
    reached = {"best_r": in_r(*terms, target), "worst_r": in_r(*terms, BID)}
    figures = result(*terms, target, signal.instrument.pip_size)._asdict() | reached
    end(signal, evidence, close_reason="take_profit", close_price=target, closed_at=at, **figures)
    return signal


def make_unfilled(by: User | None = None) -> Signal:
    """Cancelled before any tick came."""
    signal = publish_by_rules_2(by=by, number=1, pip_size="0.0001", stale_ms=60_000)
    change(signal, cancel_reason="The market closed.", cancelled_at=signal.published_at)
    why = {"cause": "market_closed", "unsettled_ms": 0, "written": plain(signal.published_at)}
    add("cancel", signal.pk, **cancellation_payload(signal), **why)
    arm(signal, "cancel")
    nothing = {"pnl": 0, "pnl_percent": 0, "pnl_r": 0}
    at = signal.published_at
    end(signal, None, close_reason="cancelled", close_price=signal.entry, closed_at=at, **nothing)
    return signal


def arm(signal: Signal, asked: str) -> None:
    """In the moment of its publication, however long ago that is on a machine that stands still."""
    at = plain(signal.published_at)
    add("arm", signal.pk, **ARM, **{"for": asked, "number": 1, "at": at, "written": at})


def tick_of(
    signal: Signal,
    kind: str,
    rule: str,
    bid: Decimal,
    ask: Decimal,
    feed: str,
    later_ms: int = 0,
    **seen: Any,
) -> Evidence:
    """One second after the last arm, and after the tick before it."""
    count = signal.evidence.exclude(kind="entry").count() + 1
    armed = json.loads(LedgerEntry.objects.filter(signal=signal.pk, kind="arm").latest("position").payload)
    accepted_ms = ms_of(armed["at"]) + 1_000 * count + later_ms
    shown = {"feed": feed, "simulated": False, "accepted_ms": accepted_ms, "settled": True, "unsettled_ms": 0}
    shown |= {"source": "tick", "bid": bid, "ask": ask, "epoch": "e", "seq": 7 + count, **seen}
    return Evidence.objects.create(signal=signal, kind=kind, rule=rule, at=moment(accepted_ms), **shown)


def end(signal: Signal, evidence: Evidence | None, **ended: Any) -> None:
    change(signal, status="closed", **ended)
    add_now("close", signal.pk, rules=2, **closure_payload(signal, evidence))


def change(signal: Signal, **columns: Any) -> None:
    Signal.objects.filter(pk=signal.pk).update(**columns)
    signal.refresh_from_db()
