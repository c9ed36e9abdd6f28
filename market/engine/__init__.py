"""The engine: ticks are let in, folded into prices and order flow, and published."""

from .listeners import EngineStart, FillTerms, SeriesEnding, SymbolStanding

__all__ = ["EngineStart", "FillTerms", "SeriesEnding", "SymbolStanding"]
