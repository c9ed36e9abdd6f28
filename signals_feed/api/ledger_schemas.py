"""The proof and the ledger as the reference describes and shows them: of the closed signal in wire.py."""

from __future__ import annotations

import hashlib
from typing import Any

from rest_framework import serializers

from core.contract.parameters import IntegerParameter, QuerySerializer
from core.contract.schema import BodySerializer
from signals_feed.judging.rules import RULES
from signals_feed.ledger.ledger import NOBODY, LedgerEntry
from signals_feed.ledger.proof import QUOTED
from signals_feed.models import Evidence, Signal
from signals_feed.wire import CLOSED_SAMPLE

FIRST_PAYLOAD = (
    '{"direction":"sell","entry":"2651.4","kind":"publish","position":1,'
    f'"signal":"{CLOSED_SAMPLE["id"]}","stop_loss":"2660.4","take_profit":"2633.4"}}'
)
FIRST_HASH = hashlib.sha256((NOBODY + FIRST_PAYLOAD).encode()).hexdigest()


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
PROOF_SAMPLE = {
    **{name: CLOSED_SAMPLE[name] for name in ("id", "user", "symbol", "direction", "status")},
    "entry": {"time": CLOSED_SAMPLE["timestamp"], "evidence": ENTRY_EVIDENCE},
    "exit": {
        "time": CLOSED_SAMPLE["closed_at"],
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
LEDGER_SAMPLE = {
    "head": {"position": 431, "hash": hashlib.sha256(b"431").hexdigest()},
    "items": [
        {
            "position": 1,
            "kind": "publish",
            "signal": CLOSED_SAMPLE["id"],
            "payload": FIRST_PAYLOAD,
            "previous": NOBODY,
            "hash": FIRST_HASH,
        }
    ],
    "count": 1,
}

HASH_PATTERN = r"^[0-9a-f]{64}$"


def hash_field(help_text: str) -> serializers.RegexField:
    return serializers.RegexField(HASH_PATTERN, help_text=help_text)


class EvidenceSerializer(serializers.Serializer[Any]):
    # A field of this name, and none of DRF's own settings.
    source = serializers.ChoiceField(  # type: ignore[assignment]
        choices=Evidence.Source.values,
        help_text="A `tick` of the feed; a stored 1m `candle`, where the service was down at the time; or"
        " the `first_after_gap` tick, where the feed was.",
    )
    rule = serializers.ChoiceField(choices=list(RULES))
    rule_text = serializers.CharField(help_text="The rule in words.")
    time = serializers.DateTimeField(help_text="The tick's own time, or the open of the candle.")
    epoch = serializers.CharField(allow_null=True, help_text="Of the numbering of ticks; null if unknown.")
    seq = serializers.IntegerField(
        allow_null=True, help_text="The tick's number, as `/ws/market` sends it with `seq`; null if unknown."
    )

    def get_fields(self) -> dict[str, Any]:
        """A tick has a bid and an ask, a candle its extremes."""
        return super().get_fields() | {name: serializers.FloatField(required=False) for name in QUOTED}


class EntrySerializer(serializers.Serializer[Any]):
    time = serializers.DateTimeField(help_text="When it was published.")
    evidence = EvidenceSerializer(allow_null=True, help_text="The quote that the market offered then.")


class ExitSerializer(serializers.Serializer[Any]):
    time = serializers.DateTimeField(help_text="When it closed.")
    close_reason = serializers.ChoiceField(choices=Signal.CloseReason.values)
    cancel_reason = serializers.CharField(allow_null=True, help_text="What staff wrote if they cancelled it.")
    evidence = EvidenceSerializer(allow_null=True, help_text="What closed it.")


class InputSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="`exit_bid` is the bid of the evidence at exit, and so on.")
    value = serializers.FloatField()
    exact = serializers.CharField(help_text="The same with every digit, for decimal arithmetic.")


class StepSerializer(InputSerializer):
    name = serializers.CharField()
    formula = serializers.CharField(help_text="In the names of the inputs and of the steps before.")
    decimals = serializers.IntegerField(
        allow_null=True, help_text="Rounded to these, half away from zero; null where nothing is rounded."
    )


class LedgerMarkSerializer(serializers.Serializer[Any]):
    position = serializers.IntegerField(min_value=1)
    kind = serializers.ChoiceField(choices=LedgerEntry.Kind.values)
    hash = hash_field("That of the ledger's entry.")


class ProofSerializer(BodySerializer):
    examples = {"A sell that reached its target": PROOF_SAMPLE}

    id = serializers.CharField()
    user = serializers.CharField(help_text="Publisher.")
    symbol = serializers.CharField()
    direction = serializers.ChoiceField(choices=Signal.Direction.values)
    status = serializers.ChoiceField(choices=Signal.Status.values)
    entry = EntrySerializer()
    exit = ExitSerializer(allow_null=True, help_text="Null while it is active.")
    inputs = InputSerializer(many=True, help_text="What the arithmetic starts from.")
    steps = StepSerializer(many=True, help_text="In order. Of an active signal only those known already.")
    ledger = LedgerMarkSerializer(many=True, help_text="Its entries in `/api/signals/ledger`.")


class LedgerQuerySerializer(QuerySerializer):
    after = IntegerParameter(
        default=0, min_value=0, max_value=999_999_999, help_text="Only entries after this position."
    )
    limit = IntegerParameter(default=50, max_value=500, help_text="Maximum number of entries.")


class LedgerHeadSerializer(serializers.Serializer[Any]):
    position = serializers.IntegerField(min_value=0, help_text="Of the last entry; positions have no holes.")
    hash = hash_field("Of the last entry; 64 noughts before the first.")


class LedgerItemSerializer(serializers.Serializer[Any]):
    position = serializers.IntegerField(min_value=1)
    kind = serializers.ChoiceField(choices=LedgerEntry.Kind.values)
    signal = serializers.CharField(help_text="Which signal it tells of.")
    payload = serializers.CharField(
        help_text="The facts as JSON text: hashed as it stands here, so keep it byte by byte."
    )
    previous = hash_field("Hash of the entry before; 64 noughts for the first.")
    hash = hash_field("SHA-256 of the UTF-8 bytes of `previous` followed by `payload`, in hexadecimal.")


class LedgerSerializer(BodySerializer):
    examples = {"The first entry": LEDGER_SAMPLE}

    head = LedgerHeadSerializer()
    items = LedgerItemSerializer(many=True, help_text="Oldest first.")
    count = serializers.IntegerField(min_value=0, help_text="Entries in this answer.")
