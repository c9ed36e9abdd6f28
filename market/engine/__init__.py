"""The engine: ticks are let in, folded into prices and order flow, and published."""

from .admission import feeds_of
from .listeners import EngineStart, SeriesEnding

__all__ = ["EngineStart", "SeriesEnding", "feeds_of"]
