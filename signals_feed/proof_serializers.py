from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.parameters import IntegerParameter, QuerySerializer
from accounts.schema import BodySerializer

from . import proof_samples
from .models import Evidence, LedgerEntry, Signal
from .proof import QUOTED
from .rules import RULES

HASH = r"^[0-9a-f]{64}$"


def hash_field(help_text: str) -> serializers.RegexField:
    return serializers.RegexField(HASH, help_text=help_text)


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
    examples = {"A sell that reached its target": proof_samples.PROOF}

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
    examples = {"The first entry": proof_samples.LEDGER}

    head = LedgerHeadSerializer()
    items = LedgerItemSerializer(many=True, help_text="Oldest first.")
    count = serializers.IntegerField(min_value=0, help_text="Entries in this answer.")
