"""How good or bad a headline is for the asset it is about."""

from .model import CheckedModel, Score, SentimentFailed, SentimentModel
from .scoring import current_model, sentiment_models

__all__ = ["CheckedModel", "Score", "SentimentFailed", "SentimentModel", "current_model", "sentiment_models"]
