"""Language models at an endpoint: asked for a shape, bounded in time and number, trusted in nothing."""

from .endpoint import LanguageFailed

__all__ = ["LanguageFailed"]
