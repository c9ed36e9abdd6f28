"""What every sentiment model can do."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Score(NamedTuple):
    score: float
    """-1 (bearish) to 1 (bullish), for the asset that the category is about."""
    model: str
    version: str
    """Which training of it, as exactly as is known; empty where nobody knows."""


class SentimentFailed(Exception):
    """This model has no score now; the sentence says why."""


class CheckedModel(Protocol):
    @property
    def identifier(self) -> str: ...

    def is_healthy(self) -> bool:
        """From memory: it is asked on every session request."""


class ScoringModel(Protocol):
    def score(self, title: str, category: str = "") -> Score:
        """In a thread that may wait; SentimentFailed where there is none."""


class SentimentModel(CheckedModel, ScoringModel, Protocol):
    async def check(self) -> None:
        """Find out whether it works, and remember it; SentimentFailed says why not."""
