"""The mark of a result: who made the prices that decided it. It stands wherever results stand, in these words
alone."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Protocol

from .record import CANDLE, SIMULATED, VENUES


class Mark(StrEnum):
    VENUE = "verified_at_venue"
    RECORDED = "recorded_here"
    DEMONSTRATION = "demonstration"
    NOT_VERIFIED = "not_verified"

    @property
    def label(self) -> str:
        return LABELS[self]

    @property
    def meaning(self) -> str:
        return MEANINGS[self]


LABELS = {
    Mark.VENUE: "Verified at a venue",
    Mark.RECORDED: "Recorded here",
    Mark.DEMONSTRATION: "Demonstration",
    Mark.NOT_VERIFIED: "Not verified",
}
MEANINGS = {
    Mark.VENUE: "Each price that decided is a tick that the service took from a trading venue, at the venue’s"
    " own address. It can be compared with what the venue publishes.",
    Mark.RECORDED: "The service recorded the prices that decided, and no venue stands behind all of them:"
    " they were pushed to it, came from another address, are stored minutes, or nobody knows who made them.",
    Mark.DEMONSTRATION: "The prices that decided are simulated or replayed.",
    Mark.NOT_VERIFIED: "The record is incomplete, or contradicts its own evidence or the rules. The signal’s"
    " page says how.",
}
NO_EVIDENCE = (
    "There is no tick evidence. The signal is older than the evidence that the service keeps; its figures"
    " agree with the ledger."
)
PUBLISHED_LATE = (
    "It was published by the rules of before, at a price that its publisher knew, after others had begun. It"
    " counts nowhere."
)


class Decision(Protocol):
    """The evidence of a fill or an exit."""

    @property
    def source(self) -> str: ...
    @property
    def feed(self) -> str: ...
    @property
    def simulated(self) -> bool | None: ...


def mark_of(why_not: str, decisions: Collection[Decision], *, is_demo: bool) -> Mark | None:
    """`why_not` says why the record does not hold. None until a price has decided something, which is for
    ever if the signal was never filled."""
    if why_not:
        return Mark.NOT_VERIFIED
    if not decisions:
        return None
    # Only what is the demo's may be dated back, whatever its prices are.
    if is_demo or any(each.simulated or each.feed in SIMULATED for each in decisions):
        return Mark.DEMONSTRATION
    is_of_venues = all(each.feed in VENUES and each.source != CANDLE for each in decisions)
    return Mark.VENUE if is_of_venues else Mark.RECORDED
