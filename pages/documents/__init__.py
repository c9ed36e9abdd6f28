"""The documentation: quick start, guides, references, search."""

from .reference.streams import asyncapi
from .views import llms

__all__ = ["asyncapi", "llms"]
