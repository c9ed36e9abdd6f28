"""The documentation: quick start, guides, references, search."""

from .streams import asyncapi
from .views import llms

__all__ = ["asyncapi", "llms"]
