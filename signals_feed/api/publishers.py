"""GET /api/publishers/{user}: how well a publisher does, over every signal."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.http import HttpRequest
from rest_framework import serializers

from accounts.viewset import KeyedViewSet
from core.contract.answers import Answer, iso_time
from core.contract.errors import NotFound
from core.contract.schema import BodySerializer, describes
from core.plain_json import encode
from core.threads import in_thread_promptly
from signals_feed.models import Signal
from signals_feed.publishers.equity import EquityPoint
from signals_feed.publishers.lookup import NO_SUCH_PUBLISHER, Publisher, find, scorecards
from signals_feed.publishers.scorecards import Scorecard, TrackRecord

PUBLISHER_SAMPLE = {
    "user": "marta",
    "active": 1,
    "signals": 2,
    "win_rate": 0.5,
    "expectancy_r": 0.5,
    "total_r": 1.0,
    "too_few": True,
    "best_excursion_r": 2.0,
    "worst_excursion_r": -1.125,
    "max_drawdown_r": 1.0,
    "max_drawdown_signals": 1,
    "closed_by": {"take_profit": 1, "stop_loss": 1, "manual": 0, "expired": 0, "cancelled": 0},
    "by_symbol": [
        {"symbol": "EURUSD", "signals": 1, "win_rate": 0.0, "expectancy_r": -1.0, "total_r": -1.0},
        {"symbol": "XAUUSD", "signals": 1, "win_rate": 1.0, "expectancy_r": 2.0, "total_r": 2.0},
    ],
    "equity": [
        {"signals": 1, "time": "2026-11-20T08:31:17.004Z", "r": 2.0, "low_r": 2.0, "high_r": 2.0},
        {"signals": 2, "time": "2026-11-20T11:02:54.310Z", "r": 1.0, "low_r": 1.0, "high_r": 1.0},
    ],
}


class RecordSerializer(serializers.Serializer[Any]):
    signals = serializers.IntegerField(min_value=0, help_text="Closed ones; all of them count.")
    win_rate = serializers.FloatField(
        allow_null=True,
        help_text="Share of signals with a `pnl_r` above 0; null before the first has closed.",
    )
    expectancy_r = serializers.FloatField(allow_null=True, help_text="Mean of `pnl_r`.")
    total_r = serializers.FloatField(help_text="Sum of `pnl_r`.")


class SymbolRecordSerializer(RecordSerializer):
    symbol = serializers.CharField()


class ClosedBySerializer(serializers.Serializer[Any]):
    """How many signals ended in each way."""

    def get_fields(self) -> dict[str, Any]:
        return {reason: serializers.IntegerField(min_value=0) for reason in Signal.CloseReason.values}


class EquityPointSerializer(serializers.Serializer[Any]):
    signals = serializers.IntegerField(min_value=1, help_text="After so many closed signals.")
    time = serializers.DateTimeField(help_text="When the last of them closed.")
    r = serializers.FloatField(help_text="Sum of `pnl_r` up to here.")
    low_r = serializers.FloatField(help_text="Lowest sum since the point before.")
    high_r = serializers.FloatField(help_text="Highest sum since the point before.")


class PublisherSerializer(RecordSerializer, BodySerializer):
    examples = {"A publisher with too few signals": PUBLISHER_SAMPLE}

    user = serializers.CharField()
    active = serializers.IntegerField(min_value=0, help_text="Signals that are still open.")
    too_few = serializers.BooleanField(help_text="Fewer than 30 closed signals: the numbers say little yet.")
    best_excursion_r = serializers.FloatField(
        allow_null=True, help_text="The most that any signal was ahead while it was open."
    )
    worst_excursion_r = serializers.FloatField(
        allow_null=True, help_text="The most that any signal was behind while it was open; negative."
    )
    max_drawdown_r = serializers.FloatField(
        min_value=0,
        help_text="Deepest fall of the sum of `pnl_r` below its highest point, which is 0 at first.",
    )
    max_drawdown_signals = serializers.IntegerField(
        min_value=0, help_text="Most signals in a row after which the sum was below its highest point."
    )
    closed_by = ClosedBySerializer(help_text="How many signals ended in each way.")
    by_symbol = SymbolRecordSerializer(many=True)
    equity = EquityPointSerializer(
        many=True,
        help_text="In the order of closing, oldest first. At most 400 points: of a longer history, "
        "neighbours share one.",
    )


class PublisherViewSet(KeyedViewSet):
    @describes(
        "getPublisher",
        PublisherSerializer,
        "A publisher's scorecard",
        tag="Signals",
        details="Over all closed signals, expired and cancelled ones included, none left out. 1 R is what a"
        " signal risked: the distance from the price that was paid to the stop.",
        refusals=[NotFound(NO_SUCH_PUBLISHER)],
    )
    async def retrieve(self, request: HttpRequest, user: str) -> Answer:
        body = await in_thread_promptly(read_scorecard, user)
        if body is None:
            raise NotFound(NO_SUCH_PUBLISHER)
        return Answer(body)


def read_scorecard(user: str) -> bytes | None:
    publisher = find(user)
    if publisher is None:
        return None
    return scorecards.read(publisher, lambda card: encode(describe_publisher(publisher, card)))


def describe_publisher(publisher: Publisher, card: Scorecard) -> dict[str, Any]:
    return {
        "user": publisher.name,
        "active": publisher.active,
        **describe_record(card.all),
        "too_few": card.too_few,
        "best_excursion_r": number(card.best_r),
        "worst_excursion_r": number(card.worst_r),
        "max_drawdown_r": float(card.drawdown.deepest_r),
        "max_drawdown_signals": card.drawdown.longest,
        "closed_by": {reason: card.by_reason[reason] for reason in Signal.CloseReason.values},
        "by_symbol": [
            {"symbol": symbol, **describe_record(record)} for symbol, record in sorted(card.by_symbol.items())
        ],
        "equity": [describe_point(point) for point in card.equity.points],
    }


def describe_record(record: TrackRecord) -> dict[str, Any]:
    return {
        "signals": record.signals,
        "win_rate": number(record.win_rate),
        "expectancy_r": number(record.expectancy_r),
        "total_r": float(record.total_r),
    }


def describe_point(point: EquityPoint) -> dict[str, Any]:
    return {
        "signals": point.signals,
        "time": iso_time(point.closed_at),
        "r": float(point.equity_r),
        "low_r": float(point.low_r),
        "high_r": float(point.high_r),
    }


def number(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
