"""Moments as answers write them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime


def iso_ms(time_ms: int) -> str:
    """2026-11-21T12:00:00.250Z"""
    moment = datetime.fromtimestamp(time_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


def iso_date(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%d}"
