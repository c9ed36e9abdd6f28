"""What one socket has subscribed to on its stream."""

from collections.abc import Callable, Collection, Iterable
from functools import cache
from sys import intern
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from market.prices.candles import key_of_candles

from .messages import (
    ALL,
    CATEGORIES,
    TIMEFRAMES,
    Category,
    Event,
    RequestedFeature,
    Subscribe,
    Timeframe,
    Unsubscribe,
    invalid,
)


class Rejected(msgspec.Struct, frozen=True):
    """A symbol as the client wrote it."""

    symbol: Annotated[str, Meta(description="The symbol as you wrote it.")]
    code: Annotated[Literal["symbol_not_found"], Meta(description="Why it was rejected.")] = (
        "symbol_not_found"
    )


class SubscriptionChange(msgspec.Struct, frozen=True):
    """Sorted, in upper case; "*" stands for all."""

    joined: list[str] = []
    left: list[str] = []
    rejected: list[Rejected] = []
    joined_keys: list[str] | None = None
    """Where frames are numbered by symbol and timeframe, those that joined: EURUSD/1m."""

    @property
    def begun(self) -> list[str]:
        """By what frames are numbered, all whose frames come from now on."""
        return self.joined if self.joined_keys is None else self.joined_keys

    def brings(self, symbol: str) -> bool:
        """Whether its frames come from now on, but did not before."""
        if self.joined_keys is not None:
            return symbol in self.joined_keys
        return symbol in self.joined or (ALL in self.joined and symbol not in self.left)


def upper(symbol: str) -> str:
    # Only ASCII: "ı" and "ſ" become I and S in upper case.
    return symbol.upper() if symbol.isascii() else symbol


def upper_key(key: str) -> str:
    """Of what frames are numbered by: EURUSD, or EURUSD/1m."""
    symbol, slash, timeframe = key.partition("/")
    return f"{upper(symbol)}{slash}{timeframe}"


T = TypeVar("T")


@cache
def united(some: frozenset[T], more: frozenset[T]) -> frozenset[T]:
    """The same object for all who asked for the same: of features and events there are few."""
    return some | more


class Subscriptions:
    """They add up, and so do features and events: a later message takes nothing away."""

    __slots__ = ("_symbols", "categories", "events", "features", "timeframes")

    def __init__(self) -> None:
        self._symbols: tuple[str, ...] = ()
        """Sorted. Thousands of sockets have some, and a set takes five times as much memory."""
        self.timeframes: tuple[Timeframe, ...] = ()
        """Of all symbols, the finest first, on the stream that has them."""
        self.categories: frozenset[Category] = frozenset()
        """Those of all symbols, on the stream that has them."""
        self.features: frozenset[RequestedFeature] = frozenset()
        self.events: frozenset[Event] = frozenset()

    @property
    def has_all(self) -> bool:
        return ALL in self._symbols

    @property
    def symbols(self) -> list[str]:
        """As in replies: ["*"] for all."""
        return list(self._symbols)

    @property
    def keys(self) -> list[str]:
        """By what frames are numbered: symbols, or symbols with timeframes."""
        if not self.timeframes:
            return self.symbols
        return [
            key_of_candles(symbol, timeframe) for symbol in self._symbols for timeframe in self.timeframes
        ]

    @property
    def shown_categories(self) -> list[Category] | UnsetType:
        """As in replies."""
        if not self.categories:
            return UNSET
        return [name for name in CATEGORIES if name in self.categories and self._symbols]

    def covers(self, symbol: str) -> bool:
        return symbol in self._symbols or self.has_all

    def subscribe(self, message: Subscribe, is_known: Callable[[str], bool]) -> SubscriptionChange:
        self.features = united(self.features, message.features)
        self.events = united(self.events, message.events)
        if message.categories is not UNSET:
            # Who has left all symbols begins anew.
            had: frozenset[Category] = self.categories if self._symbols else frozenset()
            self.categories = united(had, message.categories)
        if message.timeframes is UNSET:
            return self._subscribe(message, is_known)
        known = set(self.keys) if self.timeframes else set()
        self.timeframes = tuple(
            name for name in TIMEFRAMES if name in self.timeframes or name in message.timeframes
        )
        change = self._subscribe(message, is_known)
        return replace(change, joined_keys=[key for key in self.keys if key not in known])

    def _subscribe(self, message: Subscribe, is_known: Callable[[str], bool]) -> SubscriptionChange:
        if message.symbols is UNSET:
            return self._join({ALL}, [])
        wanted, before = dict.fromkeys(message.symbols), frozenset(self._symbols)
        # Subscriptions are kept, so that a symbol is never in both lists of a reply.
        known = {
            intern(upper(symbol))
            for symbol in wanted
            if symbol == ALL or upper(symbol) in before or is_known(upper(symbol))
        }
        rejected = [Rejected(symbol) for symbol in wanted if upper(symbol) not in known]
        return self._join(known, rejected)

    def drop(self, gone: Collection[str]) -> None:
        self._symbols = tuple(symbol for symbol in self._symbols if symbol not in gone)

    def unsubscribe(self, message: Unsubscribe) -> SubscriptionChange:
        if message.symbols is UNSET or ALL in message.symbols:
            return self._leave(self._symbols)
        if self.has_all:
            raise invalid(
                "You are subscribed to all symbols: unsubscribe from all, then name some.", "symbols"
            )
        return self._leave(set(self._symbols).intersection(map(upper, message.symbols)))

    def _join(self, wanted: set[str], rejected: list[Rejected]) -> SubscriptionChange:
        if self.has_all:
            return SubscriptionChange(rejected=rejected)
        if ALL in wanted:
            left, self._symbols = self.symbols, (ALL,)
            return SubscriptionChange([ALL], left, rejected)
        joined = sorted(wanted.difference(self._symbols))
        self._symbols = tuple(sorted(wanted.union(self._symbols)))
        return SubscriptionChange(joined, [], rejected)

    def _leave(self, unwanted: Iterable[str]) -> SubscriptionChange:
        left = sorted(unwanted)
        self.drop(frozenset(left))
        if not self._symbols:
            # Whoever begins anew says which he wants.
            self.timeframes = ()
        return SubscriptionChange(left=left)
