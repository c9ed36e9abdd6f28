"""How good or bad a headline is for the asset it is about."""

from .model import Score, SentimentFailed, SentimentModel
from .scoring import current_model, sentiment_models

__all__ = ["Score", "SentimentFailed", "SentimentModel", "current_model", "sentiment_models"]
