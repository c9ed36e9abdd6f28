"""What a source sends as JSON, read into ticks and handed to the engine. A broken tick is refused alone."""

import re
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw

from core import clock
from core.plain_json import fault_of
from market.prices.records import Tick

from .keys import MAX_TICKS, InvalidMessage, PushSource, TooLarge, sentence

NOT_ALLOWED = "symbol_not_allowed"
SIDES = {None: 0, "buy": 1, "sell": -1}

# This is in 2001: a smaller number was meant as seconds.
EARLIEST_MS = 10**12
Milliseconds = Annotated[int, Meta(ge=EARLIEST_MS, lt=10**15)]
Moment = Annotated[datetime, Meta(tz=True)]


class SentTick(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    symbol: Annotated[str, Meta(min_length=1, max_length=40)]
    bid: float
    ask: float
    time: Milliseconds | Moment | None = None
    volume: float | None = None
    side: Literal["buy", "sell"] | None = None
    price: float | None = None
    seq: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


class RejectedTick(msgspec.Struct, frozen=True):
    index: int
    code: str
    message: str


_message: msgspec.json.Decoder[Any] = msgspec.json.Decoder(list[Raw] | dict[str, Raw])
_items = msgspec.json.Decoder(list[Raw])
_tick = msgspec.json.Decoder(SentTick)


def read(text: bytes) -> list[Raw] | dict[str, Raw]:
    try:
        message: list[Raw] | dict[str, Raw] = _message.decode(text)
    except RecursionError:
        raise InvalidMessage("The message is nested too deeply.") from None
    except msgspec.ValidationError:
        raise InvalidMessage("A message is a tick, a list of ticks or an object with ticks.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidMessage(f"The message is not valid JSON: {fault_of(error)}.") from None
    return message


def read_items(message: list[Raw] | dict[str, Raw]) -> list[Raw]:
    """One tick, a list of them, or {"ticks": […]}."""
    if isinstance(message, list):
        return message
    if "ticks" not in message:
        return [Raw(msgspec.json.encode(message))]
    if len(message) > 1:
        raise InvalidMessage("Beside ticks there may be nothing else in the message.")
    try:
        return _items.decode(message["ticks"])
    except msgspec.DecodeError:
        raise InvalidMessage("ticks must be a list.") from None


def read_batch(
    items: list[Raw], now_ms: int, allowed: Collection[str] = ()
) -> tuple[dict[int, Tick], list[RejectedTick]]:
    """Ticks by their place in the message. `allowed` are the symbols whose ticks are taken; without any,
    those of all are."""
    ticks, rejected = dict[int, Tick](), list[RejectedTick]()
    for index, item in enumerate(items):
        try:
            tick = _read_tick(item, now_ms)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            rejected.append(RejectedTick(index, "malformed", _explain(error)))
            continue
        if allowed and tick.symbol not in allowed:
            rejected.append(RejectedTick(index, NOT_ALLOWED, sentence(NOT_ALLOWED)))
        else:
            ticks[index] = tick
    return ticks, rejected


def _read_tick(item: Raw, now_ms: int) -> Tick:
    sent = _tick.decode(item)
    if sent.seq is not None and sent.time is None:
        # Sent again, it would get a later time each time, as if the numbering had started over.
        raise msgspec.ValidationError("A tick with a seq needs its own time")
    return Tick(
        symbol=sent.symbol.upper() if sent.symbol.isascii() else sent.symbol,
        bid=sent.bid,
        ask=sent.ask,
        time_ms=_in_ms(sent.time, now_ms),
        volume=sent.volume or 0.0,
        side=SIDES[sent.side],
        price=sent.price,
        source_seq=sent.seq,
    )


def _in_ms(time: int | datetime | None, now_ms: int) -> int:
    if time is None:
        return now_ms
    if not isinstance(time, datetime):
        return time
    time_ms = round(time.timestamp() * 1000)
    if time_ms < EARLIEST_MS:
        raise msgspec.ValidationError("Expected a time from 2001 on - at `$.time`")
    return time_ms


def _explain(error: Exception) -> str:
    """`Expected float, got str - at $.bid` as a sentence that begins with the field."""
    what, _, where = str(error).replace("`", "").partition(" - at $.")
    what = re.sub(r"\bfloat\b", "number", what)
    return f"{where}: {what[:1].lower()}{what[1:]}." if where else f"{what}."


Push = Callable[[str, list[Tick], int, str], Awaitable[list[str | None]]]
"""Is given the sender, the ticks, the newest time that the sender gave one of them or 0, and the key's public
ID."""


class PushVerdict(msgspec.Struct):
    """How many ticks of a message were taken, and why each of the others was not."""

    accepted: int
    rejected: list[RejectedTick]


async def take(source: PushSource, message: list[Raw] | dict[str, Raw], push: Push) -> PushVerdict:
    items = read_items(message)
    if len(items) > MAX_TICKS:
        raise TooLarge("ticks", MAX_TICKS)
    now_ms = clock.now_ms()
    ticks, rejected = read_batch(items, now_ms, source.symbols)
    # A tick without a time of its own has that of its receipt, which says nothing of any clock.
    sent_ms = max((tick.time_ms for tick in ticks.values() if tick.time_ms != now_ms), default=0)
    # An empty message is a sign of life; one without a usable tick is none.
    codes = list[str | None]()
    if ticks or not items:
        codes = await push(source.origin, list(ticks.values()), sent_ms, source.public_id)
    for index, code in zip(ticks, codes, strict=True):
        if code is not None:
            rejected.append(RejectedTick(index, code, sentence(code)))
    rejected.sort(key=lambda tick: tick.index)
    return PushVerdict(len(items) - len(rejected), rejected)
