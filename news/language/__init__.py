"""Language models at an endpoint: asked for a shape, bounded in time and number, trusted in nothing."""

from .endpoint import LanguageFailed
from .model import LanguageModel, language_models

__all__ = ["LanguageFailed", "LanguageModel", "language_models"]
