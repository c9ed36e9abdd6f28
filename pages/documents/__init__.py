"""The documentation: quick start, guides, references, search."""

from .stream_reference import asyncapi
from .views import llms

__all__ = ["asyncapi", "llms"]
