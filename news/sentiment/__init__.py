"""How good or bad a headline is for the asset it is about: the interface of every sentiment model."""

from typing import NamedTuple, Protocol

__all__ = ["CheckedModel", "Score", "SentimentFailed", "SentimentModel"]


class Score(NamedTuple):
    score: float
    """-1 (bearish) to 1 (bullish), for the asset that the category is about."""
    model: str
    version: str
    """Identifies the training of the model; empty if unknown."""


class SentimentFailed(Exception):
    """The model has no score now; the message says why."""


class CheckedModel(Protocol):
    @property
    def identifier(self) -> str: ...

    def is_healthy(self) -> bool:
        """Answers from memory, because every session request asks."""


class SentimentModel(CheckedModel, Protocol):
    async def check(self) -> None:
        """Find out whether the model works, and remember it; raises SentimentFailed if not."""

    def score(self, title: str, category: str = "") -> Score:
        """Runs in a thread that may wait; raises SentimentFailed if there is no score."""
