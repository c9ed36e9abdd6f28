"""GET /api/signals/{id}/proof: everything needed to compute a result again."""

import hashlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from accounts.viewset import KeyedViewSet
from core.contract.answers import Answer
from core.contract.errors import NotFound
from core.contract.schema import describes
from core.plain_json import encode
from core.struct_schemas import Moment, Symbol, openapi
from core.threads import in_thread_promptly
from core.times import iso_time
from signals_feed.checking import pip_size_of
from signals_feed.ledger import proof
from signals_feed.ledger.ledger import LedgerEntry, plain_number
from signals_feed.models import Evidence, Signal
from signals_feed.rules import RULES
from signals_feed.wire import CloseReasons, Publisher, Side, SignalId, Status

from .ledger import Hash, Kind, Position
from .samples import SAMPLE_ENTRY, SAMPLE_EXIT, SAMPLE_SIGNAL
from .signals import NO_SUCH_SIGNAL, uuid_of

ABOUT = (
    "Everything from which the result follows: the quote at entry, what closed it, the rule, and the "
    "arithmetic in steps. Put the `exact` inputs into the formulas with decimal arithmetic, round where "
    "`decimals` says so, half away from zero, and you get every `exact` value shown there, `pnl` to the "
    "last digit."
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
    entry: Annotated[ProofOfEntry, Meta(description="How it was published.")]
    exit: Annotated[ProofOfExit | None, Meta(description="Null while it is active.")]
    inputs: Annotated[list[ProofInput], Meta(description="The values that the arithmetic starts from.")]
    steps: Annotated[
        list[ProofStep],
        Meta(description="In order. For an active signal, only those that are already known."),
    ]
    ledger: Annotated[list[LedgerMark], Meta(description="Its entries in `/api/signals/ledger`.")]


def proof_of(
    signal: Signal, entry: Evidence | None, exit_: Evidence | None, ledger: Sequence[LedgerEntry]
) -> Proof:
    return Proof(
        id=str(signal.pk),
        user=signal.user.get_username(),
        symbol=signal.instrument.symbol,
        direction=signal.direction,
        status=signal.status,
        entry=ProofOfEntry(iso_time(signal.published_at), shown_evidence(entry)),
        exit=proof_of_exit(signal, exit_),
        inputs=[
            ProofInput(name, float(value), plain_number(value))
            for name, value in proof.inputs(signal, entry, exit_, pip_size_of(signal, ledger)).items()
        ],
        steps=[
            ProofStep(
                step.name, step.formula, float(step.value), exact(step.value, step.decimals), step.decimals
            )
            for step in proof.steps(signal, entry, exit_)
        ],
        ledger=[LedgerMark(each.position, each.kind, each.hash) for each in ledger],
    )


def proof_of_exit(signal: Signal, evidence: Evidence | None) -> ProofOfExit | None:
    if signal.closed_at is None:
        return None
    return ProofOfExit(
        iso_time(signal.closed_at),
        signal.close_reason,
        signal.cancel_reason or None,
        shown_evidence(evidence),
    )


def shown_evidence(evidence: Evidence | None) -> ShownEvidence | None:
    if evidence is None:
        return None
    return ShownEvidence(
        evidence.source,
        evidence.rule,
        RULES[evidence.rule],
        iso_time(evidence.at),
        evidence.epoch or None,
        evidence.seq or None,
        **{name: float(price) for name, price in proof.known_prices(evidence).items()},
    )


def exact(value: Decimal, decimals: int | None) -> str:
    return plain_number(value) if decimals is None else f"{value:.{decimals}f}"


SAMPLE = proof_of(
    SAMPLE_SIGNAL,
    SAMPLE_ENTRY,
    SAMPLE_EXIT,
    [
        LedgerEntry(position=411, kind="publish", hash=hashlib.sha256(b"411").hexdigest()),
        LedgerEntry(position=430, kind="close", payload="{}", hash=hashlib.sha256(b"430").hexdigest()),
    ],
)


class ProofViewSet(KeyedViewSet):
    @describes(
        "getSignalProof",
        Proof,
        "How a signal's result was computed, step by step",
        tag="Signals",
        examples={"A sell that reached its target": SAMPLE},
        details=ABOUT,
        refusals=[NotFound(NO_SUCH_SIGNAL)],
    )
    async def retrieve(self, id: str) -> Answer:  # noqa: A002 - the name in the path
        pk = uuid_of(id)
        body = None if pk is None else await in_thread_promptly(read_proof, pk)
        if body is None:
            raise NotFound(NO_SUCH_SIGNAL)
        return Answer(body)


def read_proof(pk: UUID) -> bytes | None:
    signals = Signal.objects.select_related("user", "instrument").prefetch_related("evidence")
    signal = signals.filter(pk=pk).first()
    return None if signal is None else encode(look_up_proof(signal))


def look_up_proof(signal: Signal) -> Proof:
    shown = {each.kind: each for each in signal.evidence.all()}
    ledger = list(LedgerEntry.objects.filter(signal=signal.pk).order_by("position"))
    return proof_of(signal, shown.get(Evidence.Kind.ENTRY), shown.get(Evidence.Kind.EXIT), ledger)
