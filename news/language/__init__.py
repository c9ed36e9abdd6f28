"""Language models at an endpoint: asked for a shape, bounded in time and number, trusted in nothing."""

from .model import LanguageModel
from .problem import LanguageFailed
from .registry import language_model, language_models

__all__ = ["LanguageFailed", "LanguageModel", "language_model", "language_models"]
