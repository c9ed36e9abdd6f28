"""A publisher's scorecard as clients get it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from accounts.api import iso_time

from .equity import Point
from .models import Signal
from .publishers import Publisher
from .scorecards import Record, Scorecard


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


def describe_record(record: Record) -> dict[str, Any]:
    return {
        "signals": record.signals,
        "win_rate": number(record.win_rate),
        "expectancy_r": number(record.expectancy_r),
        "total_r": float(record.total_r),
    }


def describe_point(point: Point) -> dict[str, Any]:
    return {
        "signals": point.signals,
        "time": iso_time(point.closed_at),
        "r": float(point.equity_r),
        "low_r": float(point.low_r),
        "high_r": float(point.high_r),
    }


def number(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
