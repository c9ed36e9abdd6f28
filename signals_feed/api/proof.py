"""GET /api/signals/{id}/proof: everything needed to compute a result again."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType
from rest_framework.decorators import action
from rest_framework.request import Request

from core.contract.answers import Answer
from core.contract.errors import NotFound
from core.contract.parameters import describes
from core.plain_json import encode
from core.struct_schemas import Moment, Symbol, openapi
from core.threads import in_thread_promptly
from core.times import iso_time, moment, read_iso
from core.viewset import ApiViewSet
from signals_feed.ledger import proof
from signals_feed.ledger.ledger import LedgerEntry, canonical
from signals_feed.marks import Mark
from signals_feed.models import Evidence, Signal
from signals_feed.publisher_checks import witnessed_before_end
from signals_feed.record import ARM, CLOSE, FILL, PUBLISH, plain_number
from signals_feed.result_checks import ResultCheck, check_signals, pip_size_of
from signals_feed.rules import RULES
from signals_feed.wire import CloseReasons, Publisher, Side, SignalId, Status

from .ledger import FILLED_SIGNAL, SAMPLE_ARM, SAMPLE_EVIDENCE, Hash, Kind, Position
from .signals import NO_SUCH_SIGNAL, uuid_of

ABOUT = (
    "Everything from which the result follows: the quote at entry, the fill, what closed it, the rule, and "
    "the arithmetic in steps. Put the `exact` inputs into the formulas with decimal arithmetic, round where "
    "`decimals` says so, half away from zero, and you get every `exact` value shown there, `pnl` to the "
    "last digit."
)
MARKS = "Who made the prices that decided. " + " ".join(f"`{mark}`: {mark.meaning}" for mark in Mark)
MARKS += " Null as long as no price has decided anything; it stays null if the signal is never filled."
SHOWN = "It only served to check the terms: the result runs from the fill or the entry, whichever is worse."
ASKED = (
    "It closes at the first settled tick from after the request to close, accepted at least a second later: "
    "a buy at the bid, a sell at the ask."
)
Exact = Annotated[str, Meta(description="The same value with every digit, for decimal arithmetic.")]
Value = Annotated[float, Meta(description="The value as a number.")]


class ShownEvidence(msgspec.Struct):
    """A tick has a bid and an ask, a candle its extremes."""

    component: ClassVar[str] = "Evidence"

    source: Annotated[
        str,
        openapi(
            enum=Evidence.Source.values,
            description="`tick`: a tick of the feed. `candle`: a stored one-minute candle, because the"
            " service was down at the time. `first_after_gap`: the first tick after an interruption of "
            "the feed.",
        ),
    ]
    rule: Annotated[str, openapi(enum=list(RULES), description="The rule that was applied.")]
    rule_text: Annotated[str, Meta(description="The rule in words.")]
    time: Annotated[Moment, Meta(description="The tick's own time, or the start of the candle.")]
    epoch: Annotated[str | None, Meta(description="Of the numbering of ticks; null if unknown.")]
    seq: Annotated[
        int | None,
        Meta(description="The tick's number, as `/ws/market` sends it with `seq`; null if unknown."),
    ]
    feed: Annotated[
        str | None,
        Meta(
            description="Who made the price: a venue such as `kraken` (`kraken:moved` if it came from "
            "another address than the venue's own), `push:` and the public ID of the key, `replay` or "
            "`demo`; null if unknown. That of an exit is followed, after a `+` each, by what else than "
            "ticks of venues judged the signal since its fill: such a feed, or `minutes`."
        ),
    ]
    simulated: Annotated[bool | None, Meta(description="Whether it is of `demo` or `replay`.")]
    accepted_at: Annotated[
        Moment | None,
        Meta(description="When the service let the tick in, by its own clock; null if unknown."),
    ]
    bid: Annotated[float | UnsetType, Meta(description="The tick's bid.")] = UNSET
    ask: Annotated[float | UnsetType, Meta(description="The tick's ask.")] = UNSET
    bid_open: Annotated[float | UnsetType, Meta(description="The candle's first bid.")] = UNSET
    bid_low: Annotated[float | UnsetType, Meta(description="The candle's lowest bid.")] = UNSET
    bid_high: Annotated[float | UnsetType, Meta(description="The candle's highest bid.")] = UNSET
    ask_low: Annotated[float | UnsetType, Meta(description="The candle's lowest ask.")] = UNSET
    ask_high: Annotated[float | UnsetType, Meta(description="The candle's highest ask.")] = UNSET
    best: Annotated[
        float | UnsetType, Meta(description="The most favourable price while the signal was active.")
    ] = UNSET
    worst: Annotated[
        float | UnsetType, Meta(description="The least favourable price while the signal was active.")
    ] = UNSET


class ProofOfEntry(msgspec.Struct):
    component: ClassVar[str] = "Entry"

    time: Annotated[Moment, Meta(description="When it was published.")]
    evidence: Annotated[ShownEvidence | None, Meta(description="The quote that the market offered then.")]


class ProofOfFill(msgspec.Struct):
    component: ClassVar[str] = "Fill"

    time: Annotated[Moment, Meta(description="When it was filled.")]
    price: Annotated[float, Meta(description="The ask for a buy, the bid for a sell.")]
    evidence: Annotated[ShownEvidence | None, Meta(description="The tick that filled it.")]


class ProofOfArm(msgspec.Struct):
    """The fill is the first tick after `seq` that the service accepts at least `wait_ms` after `time`."""

    component: ClassVar[str] = "Arm"

    time: Annotated[Moment, Meta(description="When the engine began to look for the fill, by its own clock.")]
    number: Annotated[int, Meta(ge=1, description="Above 1 if an engine had to begin again.")]
    epoch: Annotated[str, Meta(description="Of the numbering of ticks.")]
    seq: Annotated[int, Meta(description="The last tick that it had heard by then.")]
    wait_ms: Annotated[int, Meta(description="How long it waits at least.")]


class ProofOfExit(msgspec.Struct):
    component: ClassVar[str] = "Exit"

    time: Annotated[Moment, Meta(description="When it closed.")]
    close_reason: Annotated[str, openapi(enum=Signal.CloseReason.values), CloseReasons]
    cancel_reason: Annotated[str | None, Meta(description="Why it was cancelled, if it was.")]
    evidence: Annotated[ShownEvidence | None, Meta(description="What closed the signal.")]


class ProofInput(msgspec.Struct):
    component: ClassVar[str] = "Input"

    name: Annotated[str, Meta(description="`exit_bid` is the bid of the evidence at exit, and so on.")]
    value: Value
    exact: Exact


class ProofStep(msgspec.Struct):
    component: ClassVar[str] = "Step"

    name: Annotated[str, Meta(description="What the step computes; later formulas refer to it.")]
    formula: Annotated[
        str, Meta(description="Written with the names of the inputs and of the previous steps.")
    ]
    value: Value
    exact: Exact
    decimals: Annotated[
        int | None,
        Meta(description="Rounded to this many decimals, half away from zero; null if nothing is rounded."),
    ]


class LedgerMark(msgspec.Struct):
    position: Position
    kind: Kind
    hash: Annotated[Hash, Meta(description="That of the ledger's entry.")]


class Proof(msgspec.Struct):
    id: SignalId
    user: Publisher
    symbol: Symbol
    direction: Annotated[str, openapi(enum=Signal.Direction.values), Side]
    status: Annotated[str, openapi(enum=Signal.Status.values), Status]
    mark: Annotated[
        str | None,
        openapi(enum=[*Mark], description=MARKS),
    ]
    mark_reason: Annotated[str | None, Meta(description="Why it is `not_verified`, if it is.")]
    witnessed_before_end: Annotated[
        bool | None,
        Meta(
            description="Whether a witness saw the publication before the signal ended; null for an active "
            "one that none has seen yet."
        ),
    ]
    entry: Annotated[ProofOfEntry, Meta(description="How it was published.")]
    arm: Annotated[
        ProofOfArm | None,
        Meta(
            description="From where the engine looks for the fill; null if it was filled as it was published."
        ),
    ]
    fill: Annotated[
        ProofOfFill | None,
        Meta(description="Null if it was filled as it was published, and as long as it waits for its fill."),
    ]
    exit: Annotated[ProofOfExit | None, Meta(description="Null while it is active.")]
    inputs: Annotated[list[ProofInput], Meta(description="The values that the arithmetic starts from.")]
    steps: Annotated[
        list[ProofStep],
        Meta(description="In order. For an active signal, only those that are already known."),
    ]
    ledger: Annotated[list[LedgerMark], Meta(description="Its entries in `/api/signals/ledger`.")]


def proof_of(
    signal: Signal,
    shown: Mapping[str, Evidence],
    ledger: Sequence[LedgerEntry],
    check: ResultCheck,
    *,
    is_witnessed: bool | None,
) -> Proof:
    return Proof(
        id=str(signal.pk),
        user=signal.user.get_username(),
        symbol=signal.instrument.symbol,
        direction=signal.direction,
        status=signal.status,
        mark=check.mark,
        mark_reason=check.why_not or None,
        witnessed_before_end=is_witnessed,
        entry=ProofOfEntry(
            iso_time(signal.published_at), shown_evidence(signal, shown.get(Evidence.Kind.ENTRY))
        ),
        arm=proof_of_arm(ledger),
        fill=proof_of_fill(signal, shown.get(Evidence.Kind.FILL)),
        exit=proof_of_exit(signal, shown.get(Evidence.Kind.EXIT)),
        inputs=[
            ProofInput(name, float(value), plain_number(value))
            for name, value in proof.inputs(signal, shown, pip_size_of(signal, ledger)).items()
        ],
        steps=[
            ProofStep(
                step.name, step.formula, float(step.value), exact(step.value, step.decimals), step.decimals
            )
            for step in proof.steps(signal, shown)
        ],
        ledger=[LedgerMark(each.position, each.kind, each.hash) for each in ledger],
    )


def proof_of_arm(ledger: Sequence[LedgerEntry]) -> ProofOfArm | None:
    arms = (json.loads(each.payload) for each in reversed(ledger) if each.kind == ARM)
    last = next((arm for arm in arms if arm["for"] == FILL), None)
    if last is None:
        return None
    where = last["number"], last["epoch"], last["seq"], last["wait_ms"]
    return ProofOfArm(iso_time(read_iso(last["at"])), *where)


def proof_of_fill(signal: Signal, evidence: Evidence | None) -> ProofOfFill | None:
    if signal.filled_at is None or signal.fill_price is None:
        return None
    return ProofOfFill(iso_time(signal.filled_at), float(signal.fill_price), shown_evidence(signal, evidence))


def proof_of_exit(signal: Signal, evidence: Evidence | None) -> ProofOfExit | None:
    if signal.closed_at is None:
        return None
    return ProofOfExit(
        iso_time(signal.closed_at),
        signal.close_reason,
        signal.cancel_reason or None,
        shown_evidence(signal, evidence),
    )


def shown_evidence(signal: Signal, evidence: Evidence | None) -> ShownEvidence | None:
    if evidence is None:
        return None
    return ShownEvidence(
        evidence.source,
        evidence.rule,
        rule_text(signal, evidence),
        iso_time(evidence.at),
        evidence.epoch or None,
        evidence.seq or None,
        evidence.feed or None,
        evidence.simulated,
        None if evidence.accepted_ms is None else iso_time(moment(evidence.accepted_ms)),
        **{name: float(price) for name, price in proof.known_prices(evidence).items()},
    )


def rule_text(signal: Signal, evidence: Evidence) -> str:
    """Where a signal is filled afterwards, the quote at entry decides nothing, and a close by hand waits."""
    if signal.rules > 1 and evidence.kind == Evidence.Kind.ENTRY:
        return SHOWN
    is_asked = signal.close_reason == Signal.CloseReason.MANUAL and evidence.kind == Evidence.Kind.EXIT
    return ASKED if signal.rules > 1 and is_asked else RULES[evidence.rule]


def exact(value: Decimal, decimals: int | None) -> str:
    return plain_number(value) if decimals is None else f"{value:.{decimals}f}"


SAMPLE = proof_of(
    FILLED_SIGNAL,
    SAMPLE_EVIDENCE,
    [
        LedgerEntry(
            position=position, kind=kind, payload=payload, hash=hashlib.sha256(b"%d" % position).hexdigest()
        )
        for position, kind, payload in (
            (411, PUBLISH, "{}"),
            (412, ARM, canonical(SAMPLE_ARM)),
            (413, FILL, "{}"),
            (430, CLOSE, "{}"),
        )
    ],
    ResultCheck("", Mark.VENUE),
    is_witnessed=True,
)


class ProofViewSet(ApiViewSet):
    lookup_field, lookup_value_regex = "id", "[^/]+"

    @action(detail=True)  # type: ignore[type-var]
    @describes(
        "getSignalProof",
        Proof,
        "How a signal's result was computed, step by step",
        tag="Signals",
        examples={"A sell that reached its target": SAMPLE},
        details=ABOUT,
        refusals=[NotFound(NO_SUCH_SIGNAL)],
    )
    async def proof(self, request: Request, id: str) -> Answer:  # noqa: A002 - the name in the path
        pk = uuid_of(id)
        body = None if pk is None else await in_thread_promptly(read_proof, pk)
        if body is None:
            raise NotFound(NO_SUCH_SIGNAL)
        return Answer(body)


def read_proof(pk: UUID) -> bytes | None:
    signals = Signal.objects.select_related("user", "instrument").prefetch_related("evidence")
    signal = signals.filter(pk=pk).first()
    return None if signal is None else encode(look_up_proof(signal, check_signals([signal])[signal.pk]))


def look_up_proof(signal: Signal, check: ResultCheck) -> Proof:
    shown = {each.kind: each for each in signal.evidence.all()}
    ledger = list(LedgerEntry.objects.filter(signal=signal.pk).order_by("position"))
    is_witnessed = witnessed_before_end(ledger).get(signal.pk)
    return proof_of(signal, shown, ledger, check, is_witnessed=is_witnessed)
