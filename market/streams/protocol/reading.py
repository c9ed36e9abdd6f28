"""Reads what a socket received into a message, or refuses it and says what is wrong."""

import json
import re
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from core.plain_json import fault_of

from .messages import (
    ACTIONS,
    ALL,
    CATEGORIES,
    EVENTS,
    FEATURES,
    KINDS,
    MARKET,
    MAX_ID_LENGTH,
    MAX_SYMBOLS,
    TIMEFRAMES,
    AnyMessage,
    Id,
    StreamKind,
    StreamName,
    StreamRefused,
    Subscribe,
    Unsubscribe,
    invalid,
)
from .subscriptions import upper_key

MAX_BYTES = 16 * 1024
A_SECOND, BURST = 10, 20
MAX_INVALID, INVALID_WITHIN_MS = 10, 60_000
SPACING_MS = 1000 // A_SECOND


class Inbound:
    __slots__ = ("_free_ms", "_invalid_ms")

    def __init__(self) -> None:
        self._free_ms = 0
        """When everything so far would have been sent at 10 messages a second."""
        self._invalid_ms: tuple[int, ...] = ()
        """Of the last invalid messages, the oldest first."""

    def take(self, now_ms: int) -> None:
        """Count a message, or refuse it if it is one too many."""
        free_ms = max(self._free_ms, now_ms) + SPACING_MS
        if free_ms - now_ms > BURST * SPACING_MS:
            raise StreamRefused("too_many_messages")
        self._free_ms = free_ms

    def is_one_too_many(self, now_ms: int) -> bool:
        """Count an invalid message: whether it is the tenth within 60 seconds."""
        self._invalid_ms = (*self._invalid_ms, now_ms)[-MAX_INVALID:]
        is_full = len(self._invalid_ms) == MAX_INVALID
        return is_full and now_ms - self._invalid_ms[0] < INVALID_WITHIN_MS


def check(message: AnyMessage, kind: StreamKind) -> None:
    """Refuse what would have no effect on this stream, before a client waits for it."""
    if isinstance(message, Subscribe | Unsubscribe) and not kind.takes_all:
        if message.symbols is not UNSET and ALL in message.symbols:
            raise invalid(f'"*" is not offered on {kind.path}: name each symbol.', "symbols")
        if message.symbols is UNSET and isinstance(message, Subscribe):
            raise invalid(f"symbols is required on {kind.path}: 1 to 200 instrument codes.", "symbols")
    if not isinstance(message, Subscribe):
        return
    if kind.is_numbered and message.since is not UNSET:
        raise invalid(f"since is for /ws/signals and /ws/news; {kind.path} continues with resume.", "since")
    _check_offered(message, kind)
    if message.resume is not UNSET:
        if not kind.is_numbered:
            raise invalid(
                f"resume is for prices, order flow and candles; {kind.path} continues with since.", "resume"
            )
        positions = message.resume.positions
        if len({upper_key(key) for key in positions}) < len(positions):
            raise invalid("resume names a symbol twice.", "resume")
        if kind.has_timeframes and not all(key.partition("/")[2] in TIMEFRAMES for key in positions):
            raise invalid(f"On {kind.path} resume names symbols with timeframes, as EURUSD/1m.", "resume")


def _check_offered(message: Subscribe, kind: StreamKind) -> None:
    """What one stream has, and others have not."""
    if message.timeframes is not UNSET and not kind.has_timeframes:
        raise invalid("timeframes is for /ws/candles.", "timeframes")
    if message.categories is not UNSET and not kind.has_categories:
        raise invalid("categories is for /ws/news.", "categories")
    if message.events and not kind.events:
        raise invalid("events is for /ws/signals and /ws/candles.", "events")
    if message.events.difference(kind.events):
        raise unknown_events(kind)


def unknown_events(kind: StreamKind) -> StreamRefused:
    """On a stream that has some."""
    offered = ", ".join(kind.events)
    return invalid(
        f"events on {kind.path} must be a list drawn from {offered}.", "events", allowed=[*kind.events]
    )


STREAMS = {kind.name: kind for kind in KINDS}
RULES: dict[str, str] = {
    "action": f"action must be one of {', '.join(ACTIONS)}.",
    "id": f"id must be a whole number of 64 bits, or a text of at most {MAX_ID_LENGTH} characters.",
    "api_key": "api_key must be a text.",
    "symbols": f"symbols must be a list of 1 to {MAX_SYMBOLS} instrument codes.",
    "timeframes": f"timeframes must be a list of at least one of {', '.join(TIMEFRAMES)}.",
    "categories": f"categories must be a list of at least one of {', '.join(CATEGORIES)}.",
    "features": f"features must be a list drawn from {', '.join(FEATURES)}.",
    "events": f"events must be a list drawn from {', '.join(EVENTS)}.",
    "resume": 'resume must be {"epoch": text, "positions": {symbol: its last seq}}; a position of candles is'
    " named by symbol and timeframe, as EURUSD/1m.",
    "since": "since must be a text: the id of a signal or a news item, or the since of a reply.",
    "stream": f"stream must be one of {', '.join(STREAMS)}.",
    "takeover": "takeover must be true or false.",
}
DETAILS: dict[str, dict[str, Any]] = {
    "action": {"allowed": list(ACTIONS)},
    "id": {"max": MAX_ID_LENGTH},
    "symbols": {"max": MAX_SYMBOLS},
    "timeframes": {"allowed": list(TIMEFRAMES)},
    "categories": {"allowed": list(CATEGORIES)},
    "features": {"allowed": list(FEATURES)},
    "events": {"allowed": list(EVENTS)},
    "stream": {"allowed": list(STREAMS)},
}


class _Named(msgspec.Struct):
    id: Id | UnsetType = UNSET


class _Chosen(msgspec.Struct):
    """What subscribe narrows, and unsubscribe cannot."""

    timeframes: msgspec.Raw | UnsetType = UNSET
    categories: msgspec.Raw | UnsetType = UNSET


class _Acting(_Named, kw_only=True):
    action: str


class _Addressed(msgspec.Struct):
    stream: StreamName


_named, _acting = msgspec.json.Decoder(_Named), msgspec.json.Decoder(_Acting)
_addressed = msgspec.json.Decoder(_Addressed)
_chosen = msgspec.json.Decoder(_Chosen)
_message = msgspec.json.Decoder(AnyMessage)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def named_kind(text: bytes) -> StreamKind | None:
    """The stream that a message on `/ws` names. A ping names none, nor does what `read` refuses anyway."""
    given = _without_nulls(text)
    try:
        acting = _acting.decode(given)
    except (ValueError, RecursionError):
        return None
    if acting.action not in ACTIONS or acting.action == "ping":
        return None
    try:
        return STREAMS[_decode(_addressed, given, MARKET).stream]
    except StreamRefused as refused:
        refused.id = acting.id
        raise


def read(text: bytes, kind: StreamKind) -> AnyMessage:
    """Read a message. A refusal carries its id, if that could be read."""
    named = UNSET
    try:
        given = _without_nulls(text)
        named = _decode(_named, given, kind).id
        _refuse_repeated_names(text)
        message: AnyMessage = _decode(_message, given, kind)
        if isinstance(message, Unsubscribe):
            _check_leaves_symbols(_decode(_chosen, given, kind))
            _check_names(message, kind)
        check(message, kind)
    except StreamRefused as refused:
        refused.id = named
        raise
    return message


def _check_leaves_symbols(chosen: _Chosen) -> None:
    """Ignored, either would end more than was meant."""
    for field in ("timeframes", "categories"):
        if getattr(chosen, field) is not UNSET:
            raise invalid(
                f"unsubscribe is for whole symbols: leave all, and subscribe again with {field}.", field
            )


def _check_names(message: Unsubscribe, kind: StreamKind) -> None:
    """The spelling of positions would leave nothing."""
    if kind.has_timeframes and message.symbols is not UNSET and any("/" in name for name in message.symbols):
        raise invalid(
            "unsubscribe is for whole symbols, as EURUSD: leave it, and subscribe again with timeframes.",
            "symbols",
        )


def unknown_features() -> StreamRefused:
    return invalid(RULES["features"], "features", **DETAILS["features"])


def _without_nulls(text: bytes) -> bytes:
    """Many encoders write null for what is absent. A required member is reported as missing all the same."""
    if b"null" not in text:
        return text
    try:
        members = _members.decode(text)
    except (ValueError, RecursionError):
        return text
    # Values stay raw: a number that a stranger writes may have a billion digits.
    return msgspec.json.encode({name: value for name, value in members.items() if bytes(value) != b"null"})


def _decode(decoder: msgspec.json.Decoder[Any], text: bytes, kind: StreamKind) -> Any:
    try:
        return decoder.decode(text)
    except RecursionError:
        raise invalid("The message is nested too deeply.") from None
    except msgspec.ValidationError as error:
        raise _explain(str(error), kind) from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise invalid(f"The message is not valid JSON: {fault_of(error)}.") from None


def _explain(error: str, kind: StreamKind) -> StreamRefused:
    found = re.search(r"at `\$\.(\w+)", error) or re.search(r"required field `(\w+)`", error)
    field = found[1] if found else ""
    if field not in RULES:
        return invalid("A message must be a JSON object with an action.")
    if field == "events" and kind.events:
        return unknown_events(kind)
    return invalid(RULES[field], field, **DETAILS.get(field, {}))


def _refuse_repeated_names(text: bytes) -> None:
    """JSON readers differ in which of two they take, so a client that sends both is refused."""
    try:
        # Numbers are left as text: int() would refuse thousands of digits in a field that is ignored.
        json.loads(text.decode(), object_pairs_hook=_once, parse_int=str, parse_float=str)
    except RecursionError:
        raise invalid("The message is nested too deeply.") from None
    except ValueError as error:
        raise invalid(f"The message is not valid JSON: {fault_of(error)}.") from None


def _once(pairs: list[tuple[str, Any]]) -> None:
    names = {name for name, _ in pairs}
    if len(names) == len(pairs):
        return
    twice = next((name for name in RULES if sum(name == other for other, _ in pairs) > 1), None)
    raise invalid(f"{twice or 'A name'} occurs in the message twice.", twice or UNSET)
