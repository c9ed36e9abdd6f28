"""The AI models that answer a health check now."""

from __future__ import annotations

from typing import Protocol


class SentimentModel(Protocol):
    identifier: str

    def is_healthy(self) -> bool: ...


REGISTERED: list[SentimentModel] = []


def available() -> list[str]:
    return [model.identifier for model in REGISTERED if model.is_healthy()]
