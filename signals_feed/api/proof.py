"""GET /api/signals/{id}/proof: what it takes to compute a result again."""

import hashlib
import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec
from django.http import HttpRequest
from msgspec import UNSET, Meta, UnsetType

from accounts.viewset import KeyedViewSet
from core.contract.answers import Answer
from core.contract.errors import NotFound
from core.contract.schema import describes
from core.plain_json import encode
from core.struct_schemas import Moment, openapi
from core.threads import in_thread_promptly
from core.times import iso_time
from signals_feed.ledger import proof
from signals_feed.ledger.ledger import LedgerEntry, plain_number
from signals_feed.models import Evidence, Signal
from signals_feed.rules import RULES
from signals_feed.wire import CLOSED_SAMPLE, Publisher

from .ledger import Hash, Kind, Position
from .signals import NO_SUCH_SIGNAL, uuid_of

ABOUT = (
    "Everything that the result follows from: the quote at entry, what closed it, the rule, and the"
    " arithmetic in steps. Put the `exact` inputs into the formulas with decimal arithmetic, round where"
    " `decimals` says so, half away from zero, and you get every `exact` that stands there, `pnl` to the"
    " last digit."
)
Exact = Annotated[str, Meta(description="The same with every digit, for decimal arithmetic.")]
OptionalPrice = float | UnsetType


class ShownEvidence(msgspec.Struct):
    """A tick has a bid and an ask, a candle its extremes."""

    component: ClassVar[str] = "Evidence"

    source: Annotated[
        str,
        openapi(
            enum=Evidence.Source.values,
            description="A `tick` of the feed; a stored 1m `candle`, where the service was down at the time;"
            " or the `first_after_gap` tick, where the feed was.",
        ),
    ]
    rule: Annotated[str, openapi(enum=list(RULES))]
    rule_text: Annotated[str, Meta(description="The rule in words.")]
    time: Annotated[Moment, Meta(description="The tick's own time, or the open of the candle.")]
    epoch: Annotated[str | None, Meta(description="Of the numbering of ticks; null if unknown.")]
    seq: Annotated[
        int | None,
        Meta(description="The tick's number, as `/ws/market` sends it with `seq`; null if unknown."),
    ]
    bid: OptionalPrice = UNSET
    ask: OptionalPrice = UNSET
    bid_open: OptionalPrice = UNSET
    bid_low: OptionalPrice = UNSET
    bid_high: OptionalPrice = UNSET
    ask_low: OptionalPrice = UNSET
    ask_high: OptionalPrice = UNSET
    best: OptionalPrice = UNSET
    worst: OptionalPrice = UNSET


class ProofOfEntry(msgspec.Struct):
    component: ClassVar[str] = "Entry"

    time: Annotated[Moment, Meta(description="When it was published.")]
    evidence: Annotated[ShownEvidence | None, Meta(description="The quote that the market offered then.")]


class ProofOfExit(msgspec.Struct):
    component: ClassVar[str] = "Exit"

    time: Annotated[Moment, Meta(description="When it closed.")]
    close_reason: Annotated[str, openapi(enum=Signal.CloseReason.values)]
    cancel_reason: Annotated[str | None, Meta(description="What staff wrote if they cancelled it.")]
    evidence: Annotated[ShownEvidence | None, Meta(description="What closed it.")]


class ProofInput(msgspec.Struct):
    component: ClassVar[str] = "Input"

    name: Annotated[str, Meta(description="`exit_bid` is the bid of the evidence at exit, and so on.")]
    value: float
    exact: Exact


class ProofStep(msgspec.Struct):
    component: ClassVar[str] = "Step"

    name: str
    formula: Annotated[str, Meta(description="In the names of the inputs and of the steps before.")]
    value: float
    exact: Exact
    decimals: Annotated[
        int | None,
        Meta(description="Rounded to these, half away from zero; null where nothing is rounded."),
    ]


class LedgerMark(msgspec.Struct):
    position: Position
    kind: Kind
    hash: Annotated[Hash, Meta(description="That of the ledger's entry.")]


class Proof(msgspec.Struct):
    id: str
    user: Publisher
    symbol: str
    direction: Annotated[str, openapi(enum=Signal.Direction.values)]
    status: Annotated[str, openapi(enum=Signal.Status.values)]
    entry: ProofOfEntry
    exit: Annotated[ProofOfExit | None, Meta(description="Null while it is active.")]
    inputs: Annotated[list[ProofInput], Meta(description="What the arithmetic starts from.")]
    steps: Annotated[
        list[ProofStep], Meta(description="In order. Of an active signal only those known already.")
    ]
    ledger: Annotated[list[LedgerMark], Meta(description="Its entries in `/api/signals/ledger`.")]


def _input(name: str, exact: str) -> ProofInput:
    return ProofInput(name, float(exact), exact)


def _step(name: str, formula: str, exact: str, decimals: int | None = None) -> ProofStep:
    return ProofStep(name, formula, float(exact), exact, decimals)


SAMPLE = Proof(
    id=CLOSED_SAMPLE.id,
    user=CLOSED_SAMPLE.user,
    symbol=CLOSED_SAMPLE.symbol,
    direction=CLOSED_SAMPLE.direction,
    status=CLOSED_SAMPLE.status,
    entry=ProofOfEntry(
        CLOSED_SAMPLE.timestamp,
        ShownEvidence(
            source="tick",
            rule="quote",
            rule_text=RULES["quote"],
            time="2026-11-19T15:40:02.611Z",
            epoch="k3v9x2q7",
            seq=918_204,
            bid=2651.4,
            ask=2651.62,
        ),
    ),
    exit=ProofOfExit(
        CLOSED_SAMPLE.closed_at,
        CLOSED_SAMPLE.close_reason,
        None,
        ShownEvidence(
            source="tick",
            rule="target",
            rule_text=RULES["target"],
            time="2026-11-20T08:31:17.004Z",
            epoch="k3v9x2q7",
            seq=1_204_511,
            bid=2633.11,
            ask=2633.33,
            best=2633.4,
            worst=2658.1,
        ),
    ),
    inputs=[
        _input("entry", "2651.4"),
        _input("stop_loss", "2660.4"),
        _input("take_profit", "2633.4"),
        _input("entry_bid", "2651.4"),
        _input("entry_ask", "2651.62"),
        _input("exit_bid", "2633.11"),
        _input("exit_ask", "2633.33"),
        _input("exit_best", "2633.4"),
        _input("exit_worst", "2658.1"),
        _input("pip_size", "0.01"),
    ],
    steps=[
        _step("tradable_price", "entry_bid", "2651.4"),
        _step("paid", "min(entry, tradable_price)", "2651.4"),
        _step("risk", "abs(paid - stop_loss)", "9"),
        _step("close_price", "take_profit", "2633.4"),
        _step("gained", "paid - close_price", "18"),
        _step("pnl", "gained / pip_size", "1800.0", 1),
        _step("pnl_percent", "gained / paid * 100", "0.6789", 4),
        _step("pnl_r", "gained / risk", "2.0000", 4),
        _step("best_r", "(paid - exit_best) / risk", "2.0000", 4),
        _step("worst_r", "(paid - exit_worst) / risk", "-0.7444", 4),
    ],
    ledger=[
        LedgerMark(411, "publish", hashlib.sha256(b"411").hexdigest()),
        LedgerMark(430, "close", hashlib.sha256(b"430").hexdigest()),
    ],
)


class ProofViewSet(KeyedViewSet):
    @describes(
        "getSignalProof",
        Proof,
        "How a signal's result came about, to be computed again",
        tag="Signals",
        examples={"A sell that reached its target": SAMPLE},
        details=ABOUT,
        refusals=[NotFound(NO_SUCH_SIGNAL)],
    )
    async def retrieve(self, request: HttpRequest, id: str) -> Answer:  # noqa: A002 - the name in the path
        pk = uuid_of(id)
        body = None if pk is None else await in_thread_promptly(read_proof, pk)
        if body is None:
            raise NotFound(NO_SUCH_SIGNAL)
        return Answer(body)


def read_proof(pk: UUID) -> bytes | None:
    signals = Signal.objects.select_related("user", "instrument").prefetch_related("evidence")
    signal = signals.filter(pk=pk).first()
    if signal is None:
        return None
    return encode(proof_of(signal, LedgerEntry.objects.filter(signal=pk).order_by("position")))


def proof_of(signal: Signal, ledger: Iterable[LedgerEntry]) -> Proof:
    shown = {each.kind: each for each in signal.evidence.all()}
    entry, exit_ = shown.get(Evidence.Kind.ENTRY), shown.get(Evidence.Kind.EXIT)
    entries = list(ledger)
    inputs = proof.inputs(signal, entry, exit_, pip_size_of(signal, entries))
    return Proof(
        id=str(signal.pk),
        user=signal.user.get_username(),
        symbol=signal.instrument.symbol,
        direction=signal.direction,
        status=signal.status,
        entry=ProofOfEntry(iso_time(signal.published_at), shown_evidence(entry)),
        exit=proof_of_exit(signal, exit_),
        inputs=[_input(name, plain_number(value)) for name, value in inputs],
        steps=[
            _step(step.name, step.formula, exact(step.value, step.decimals), step.decimals)
            for step in proof.steps(signal, entry, exit_)
        ],
        ledger=[LedgerMark(each.position, each.kind, each.hash) for each in entries],
    )


def pip_size_of(signal: Signal, ledger: Iterable[LedgerEntry]) -> Decimal:
    """The one the result was computed with; for active and very old signals the instrument's."""
    for each in ledger:
        if each.kind == LedgerEntry.Kind.CLOSE:
            return Decimal(json.loads(each.payload).get("pip_size", signal.instrument.pip_size))
    return signal.instrument.pip_size


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
    prices = {name: getattr(evidence, name) for name in proof.QUOTED}
    return ShownEvidence(
        evidence.source,
        evidence.rule,
        RULES[evidence.rule],
        iso_time(evidence.at),
        evidence.epoch or None,
        evidence.seq or None,
        **{name: float(price) for name, price in prices.items() if price is not None},
    )


def exact(value: Decimal, decimals: int | None) -> str:
    return plain_number(value) if decimals is None else f"{value:.{decimals}f}"
