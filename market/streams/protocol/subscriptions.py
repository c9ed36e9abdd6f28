"""What one socket has subscribed to on its stream."""

from collections.abc import Callable, Collection, Iterable
from typing import Literal

import msgspec
from msgspec import UNSET

from .messages import ALL, Event, RequestedFeature, Subscribe, Unsubscribe
from .refusals import invalid


class Rejected(msgspec.Struct, frozen=True):
    """A symbol as the client wrote it."""

    symbol: str
    code: Literal["symbol_not_found"] = "symbol_not_found"


class SubscriptionChange(msgspec.Struct, frozen=True):
    """Sorted, in upper case; "*" stands for all."""

    joined: list[str] = []
    left: list[str] = []
    rejected: list[Rejected] = []

    def brings(self, symbol: str) -> bool:
        """Whether its frames come from now on, but did not before."""
        return symbol in self.joined or (ALL in self.joined and symbol not in self.left)


def upper(symbol: str) -> str:
    # Only ASCII: "ı" and "ſ" become I and S in upper case.
    return symbol.upper() if symbol.isascii() else symbol


class Subscriptions:
    """They add up, and so do features and events: a later message takes nothing away."""

    __slots__ = ("_symbols", "events", "features")

    def __init__(self) -> None:
        self._symbols: set[str] = set()
        self.features: set[RequestedFeature] = set()
        self.events: set[Event] = set()

    @property
    def has_all(self) -> bool:
        return ALL in self._symbols

    @property
    def symbols(self) -> list[str]:
        """As in replies: ["*"] for all."""
        return sorted(self._symbols)

    def covers(self, symbol: str) -> bool:
        return symbol in self._symbols or self.has_all

    def subscribe(self, message: Subscribe, is_known: Callable[[str], bool]) -> SubscriptionChange:
        self.features |= message.features
        self.events |= message.events
        if message.symbols is UNSET:
            return self._join({ALL}, [])
        wanted = dict.fromkeys(message.symbols)
        # Subscriptions are kept, so that a symbol is never in both lists of a reply.
        known = {
            upper(symbol)
            for symbol in wanted
            if symbol == ALL or upper(symbol) in self._symbols or is_known(upper(symbol))
        }
        rejected = [Rejected(symbol) for symbol in wanted if upper(symbol) not in known]
        return self._join(known, rejected)

    def drop(self, gone: Collection[str]) -> None:
        self._symbols = self._symbols.difference(gone)

    def unsubscribe(self, message: Unsubscribe) -> SubscriptionChange:
        if message.symbols is UNSET or ALL in message.symbols:
            return self._leave(self._symbols)
        if self.has_all:
            raise invalid(
                "You are subscribed to all symbols: unsubscribe from all, then name some.", "symbols"
            )
        return self._leave(self._symbols.intersection(map(upper, message.symbols)))

    def _join(self, wanted: set[str], rejected: list[Rejected]) -> SubscriptionChange:
        if self.has_all:
            return SubscriptionChange(rejected=rejected)
        if ALL in wanted:
            left, self._symbols = self.symbols, {ALL}
            return SubscriptionChange([ALL], left, rejected)
        joined = sorted(wanted - self._symbols)
        self._symbols |= wanted
        return SubscriptionChange(joined, [], rejected)

    def _leave(self, unwanted: Iterable[str]) -> SubscriptionChange:
        left = sorted(unwanted)
        self._symbols = self._symbols.difference(left)
        return SubscriptionChange(left=left)
