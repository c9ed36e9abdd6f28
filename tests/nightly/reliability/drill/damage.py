"""What a fault did to those who read and write, and what of that must never be."""

from __future__ import annotations

from typing import NamedTuple

LIMIT, PROCESSES, MINUTE_S = 60, 2, 60.0
MOST_IN_A_MINUTE = (PROCESSES + 1) * LIMIT
"""As docs/operate/redis-and-postgresql.md promises."""
BACK_WITHIN_S, ANSWERED_WITHIN_S, FAILING_FOR_S = 10.0, 5.0, 10.0


class Admission(NamedTuple):
    """Of one account that asks far more often than it may."""

    most_in_a_minute: int
    asked: int
    """In all, from before the fault until a minute after it."""

    @property
    def harm(self) -> dict[str, int]:
        return {
            "requests admitted beyond the promise": max(0, self.most_in_a_minute - MOST_IN_A_MINUTE),
            "requests too few to exceed the promise": max(0, MOST_IN_A_MINUTE + 1 - self.asked),
        }


class Damage(NamedTuple):
    """What one fault did, and what those whom it met were told."""

    name: str
    sockets: int
    missed: int
    """Messages that a client did not get, and was not told of."""
    doubled: int
    gaps: int
    """Clients that were told of a gap."""
    stale: int
    """Clients that were told that what they hear is old."""
    ticks_lost: int
    """Acknowledged, and not there."""
    ticks_doubled: int
    ticks_refused: dict[str, int]
    """By the code of why."""
    signals_lost: int
    ledger_fault: str
    silent_s: float
    """The longest time in which some client heard nothing."""
    unanswered_s: float
    """The longest time in which no request was answered."""
    failing_s: float
    """Between the first and the last request or push that was sent and failed."""
    back_s: float
    """From the end of the fault until all heard again."""
    statuses: dict[int, int]
    admission: Admission | None
    """None where the fault does not concern limits, and nobody asked for a minute."""


def harm_of(damage: Damage) -> list[str]:
    """Nothing may be lost or doubled without a word, or once it was acknowledged, nor be away for long."""
    found = {
        "messages lost without notice": damage.missed,
        "messages duplicated": damage.doubled,
        "acknowledged ticks lost": damage.ticks_lost,
        "acknowledged ticks duplicated": damage.ticks_doubled,
        "acknowledged signals lost": damage.signals_lost,
        "answers 500": damage.statuses.get(500, 0),
        "seconds until all clients received data again": round(damage.back_s)
        if damage.back_s > BACK_WITHIN_S
        else 0,
        "seconds without an answer": round(damage.unanswered_s)
        if damage.unanswered_s > ANSWERED_WITHIN_S
        else 0,
        "seconds in which requests failed": round(damage.failing_s)
        if damage.failing_s > FAILING_FOR_S
        else 0,
    } | (damage.admission.harm if damage.admission else {})
    ledger = [f"ledger: {damage.ledger_fault}"] if damage.ledger_fault else []
    return [f"{what}: {count}" for what, count in found.items() if count] + ledger
