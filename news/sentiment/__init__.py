"""How good or bad a headline is for the asset it is about."""

from .model import CheckedModel, Score, SentimentFailed, SentimentModel

__all__ = ["CheckedModel", "Score", "SentimentFailed", "SentimentModel"]
