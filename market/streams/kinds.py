"""The three streams, and what each makes of a message. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import UNSET

from .messages import ALL, AnyMessage, Subscribe, Unsubscribe
from .protocol import StreamName
from .refusals import Refused, invalid
from .subscriptions import upper


class Kind(msgspec.Struct, frozen=True):
    name: StreamName
    takes_all: bool
    """Whether symbols may be absent or "*"."""
    is_numbered: bool
    """Whether it is resumed by numbers; signals are, by their ids."""
    can_conflate: bool = False
    """Whether a newer message can stand for older ones."""

    @property
    def path(self) -> str:
        return f"/ws/{self.name}"


MARKET = Kind("market", takes_all=False, is_numbered=True, can_conflate=True)
ORDERFLOW = Kind("orderflow", takes_all=True, is_numbered=True)
SIGNALS = Kind("signals", takes_all=True, is_numbered=False)
KINDS = (MARKET, ORDERFLOW, SIGNALS)


def check(message: AnyMessage, kind: Kind) -> None:
    """Refuse what would have no effect on this stream, before a client waits for it."""
    for refused in _refusals(message, kind):
        raise refused


def _refusals(message: AnyMessage, kind: Kind) -> Iterator[Refused]:
    if isinstance(message, Subscribe | Unsubscribe) and not kind.takes_all:
        if message.symbols is not UNSET and ALL in message.symbols:
            yield invalid(f'"*" is not offered on {kind.path}: name each symbol.', "symbols")
        if message.symbols is UNSET and isinstance(message, Subscribe):
            yield invalid(f"symbols is required on {kind.path}: 1 to 200 instrument codes.", "symbols")
    if not isinstance(message, Subscribe):
        return
    if kind.is_numbered and message.since is not UNSET:
        yield invalid(f"since is for /ws/signals; {kind.path} goes on with resume.", "since")
    if kind.is_numbered and message.events:
        yield invalid("events is for /ws/signals.", "events")
    if message.resume is not UNSET:
        if not kind.is_numbered:
            yield invalid(f"resume is for prices and order flow; {kind.path} goes on with since.", "resume")
        if len({upper(symbol) for symbol in message.resume.positions}) < len(message.resume.positions):
            yield invalid("resume names a symbol twice.", "resume")
