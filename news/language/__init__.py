"""Language models at an endpoint: asked for answers of a given shape, within limits, and never trusted."""

from .endpoint import LanguageFailed

__all__ = ["LanguageFailed"]
