"""/signals/{id}: a signal in full, and everything that its result follows from."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.times import read_iso
from signals_feed.api.proof import Proof, ShownEvidence, look_up_proof
from signals_feed.figures import exact_time, in_words, tick_number
from signals_feed.models import Evidence, Signal
from signals_feed.publishing.actions import result_now
from signals_feed.result_checks import check_signals

# A signal's levels on one line, from the lowest to the highest price, as wide as the picture.
WIDTH, MARGIN = 1000, 20


class LevelsPicture(NamedTuple):
    """In units of the picture, from the left."""

    stop: int
    paid: int
    target: int
    close: int | None
    reached: tuple[int, int] | None
    """How far the exit side went while the signal was open."""

    @property
    def risk(self) -> tuple[int, int]:
        return min(self.stop, self.paid), abs(self.stop - self.paid)

    @property
    def reward(self) -> tuple[int, int]:
        return min(self.target, self.paid), abs(self.target - self.paid)


def draw_levels(
    stop: Decimal, paid: Decimal, target: Decimal, close: Decimal | None, extremes: list[Decimal]
) -> LevelsPicture:
    known = [stop, paid, target, *extremes, *([] if close is None else [close])]
    low, high = min(known), max(known)
    # The levels of a signal differ, so this is never nothing.
    scale = Decimal(WIDTH - 2 * MARGIN) / (high - low)

    def x(price: Decimal) -> int:
        return round(MARGIN + (price - low) * scale)

    reached = (x(min(extremes)), x(max(extremes))) if extremes else None
    return LevelsPicture(x(stop), x(paid), x(target), None if close is None else x(close), reached)


PRICES = (
    *("bid", "ask", "bid_open", "bid_low", "bid_high", "ask_low", "ask_high"),
    *("best", "worst"),
)


class ShownStep(NamedTuple):
    name: str
    formula: str
    with_numbers: str
    value: str


class ShownTick(NamedTuple):
    """A quote or a minute, as the page lists it."""

    source: str
    feed: str
    rule: str
    at: str
    number: str
    prices: list[tuple[str, float]]


@require_safe
def signal_page(request: HttpRequest, pk: UUID) -> HttpResponse:
    signals = Signal.objects.select_related("user", "instrument").prefetch_related("evidence")
    signal = signals.filter(pk=pk).first()
    if signal is None:
        raise Http404
    check = check_signals([signal])[signal.pk]
    proof = look_up_proof(signal, check)
    # Without a fill, the levels are drawn around the entry.
    start = signal.entry if signal.paid is None else signal.paid
    exits = [each for each in signal.evidence.all() if each.kind == Evidence.Kind.EXIT]
    extremes = [price for each in exits for price in (each.best, each.worst) if price is not None]
    exit_at = None if signal.is_unfilled else signal.close_price
    context = {
        "signal": signal,
        "lasted": lasted(signal),
        "now": result_now(signal) if signal.closed_at is None else {},
        "check": check,
        "proof": proof,
        "steps": shown_steps(proof, signal.instrument.digits),
        "entry_tick": shown_tick(proof.entry.evidence),
        "fill_tick": shown_tick(proof.fill.evidence) if proof.fill else None,
        "exit_tick": shown_tick(proof.exit.evidence) if proof.exit else None,
        "picture": draw_levels(signal.stop_loss, start, signal.take_profit, exit_at, extremes),
        "width": WIDTH,
    }
    return render(request, "signals/proof/signal.html", context)


def lasted(signal: Signal) -> str:
    """How long it was open."""
    if signal.closed_at is None:
        return ""
    return in_words(round((signal.closed_at - signal.published_at) / timedelta(seconds=1)))


def shown_steps(proof: Proof, digits: int) -> list[ShownStep]:
    """Each formula once more with the numbers that its names stand for."""
    known = {given.name: in_digits(given.exact, digits) for given in proof.inputs}
    known |= {given.name: given.exact for given in proof.inputs if given.name == "pip_size"}
    steps = []
    for step in proof.steps:
        numbers = re.sub(r"[a-z_]+", lambda name: known.get(name[0], name[0]), step.formula)
        value = in_digits(step.exact, digits) if step.decimals is None else step.exact
        steps.append(ShownStep(step.name, step.formula, numbers, value))
        known[step.name] = value
    return steps


def in_digits(exact: str, digits: int) -> str:
    """A price, or the distance between two, with the zeros that the instrument writes; nothing is rounded."""
    value = Decimal(exact)
    return exact if value != round(value, digits) else f"{value:.{digits}f}"


def shown_tick(evidence: ShownEvidence | None) -> ShownTick | None:
    if evidence is None:
        return None
    return ShownTick(
        source=str(Evidence.Source(evidence.source).label),
        feed=evidence.feed or "",
        rule=evidence.rule_text,
        at=exact_time(read_iso(evidence.time)),
        number=tick_number(evidence.seq, evidence.epoch) if evidence.seq and evidence.epoch else "",
        prices=[
            (name.replace("_", " "), price)
            for name in PRICES
            if isinstance(price := getattr(evidence, name), float)
        ],
    )
