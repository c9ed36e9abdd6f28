"""The engine: ticks are let in, folded into prices and order flow, and published."""

from .listeners import EngineStart, FillTerms, SeriesEnding, SymbolStanding
from .tick_pages import FoundTicks, KeptTick, TickPlace, WantedTicks, pack_ticks

__all__ = [
    "EngineStart",
    "FillTerms",
    "FoundTicks",
    "KeptTick",
    "SeriesEnding",
    "SymbolStanding",
    "TickPlace",
    "WantedTicks",
    "pack_ticks",
]
