"""The AsyncAPI document, made of the types that read and write the messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from . import protocol
from .about import FAULTS, FEATURES, INTRODUCTION, LIMITS, SENT, SEQ
from .examples import SAID, TOLD, Examples
from .frames import AbsorptionSignal, OrderFlowTick, PriceTick
from .kinds import MARKET, ORDERFLOW, Kind
from .messages import List, Ping, Subscribe, Unsubscribe
from .refusals import CLOSES, REFUSALS

Json = dict[str, Any]
Types = Sequence[type[msgspec.Struct]]
Scheme = Literal["ws", "wss"]

NUMBER: Json = {"type": "integer", "minimum": 1, "description": SEQ}
MOMENT: Json = {"type": "integer", "minimum": 0, "description": SENT}
ANSWERS: dict[type[msgspec.Struct], type[msgspec.Struct]] = {
    Subscribe: protocol.Subscribed,
    Unsubscribe: protocol.Unsubscribed,
    List: protocol.Listed,
    Ping: protocol.Pong,
}


class Channel(msgspec.Struct, frozen=True):
    """What is told of one stream."""

    kind: Kind
    title: str
    about: str
    data: Types
    examples: Examples = {}

    @property
    def announcements(self) -> list[type[msgspec.Struct]]:
        """What comes unasked besides the data."""
        found: list[type[msgspec.Struct]] = [protocol.Heartbeat, protocol.Notice, protocol.Error]
        if self.kind.is_numbered:
            found.append(protocol.Gap)
        if self.kind is MARKET:
            found.append(protocol.Conflated)
        return found

    @property
    def extras(self) -> Json:
        """What the data carry for those who asked for it."""
        return {"seq": NUMBER, "sent": MOMENT} if self.kind.is_numbered else {"sent": MOMENT}

    @property
    def messages(self) -> list[type[msgspec.Struct]]:
        return [*ANSWERS, *ANSWERS.values(), *self.data, *self.announcements]


PRICES = Channel(
    MARKET, "Prices", "Every tick of the subscribed instruments: name them in `symbols`.", (PriceTick,)
)
FLOW = Channel(
    ORDERFLOW,
    "Order flow",
    "Who pressed, tick by tick, and where somebody absorbed it. Without `symbols`: of all instruments.",
    (OrderFlowTick, AbsorptionSignal),
)


def servers(host: str, scheme: Scheme = "wss") -> Json:
    return {"tickwire": {"host": host, "protocol": scheme}}


def document(channels: Sequence[Channel], host: str, scheme: Scheme = "wss") -> Json:
    types = list(dict.fromkeys(kind for channel in channels for kind in channel.messages))
    _, schemas = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for channel in channels:
        for data in channel.data:
            schemas[data.__name__]["properties"] |= channel.extras
    examples = SAID | TOLD
    for channel in channels:
        examples |= channel.examples
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Tickwire streams", "version": "1", "description": INTRODUCTION},
        "servers": servers(host, scheme),
        "defaultContentType": "application/json",
        "channels": {channel.kind.name: _channel(channel) for channel in channels},
        "operations": {name: told for channel in channels for name, told in _operations(channel)},
        "components": {
            "messages": {kind.__name__: _message(kind, examples[kind]) for kind in types},
            "schemas": schemas,
        },
        "x-features": FEATURES | FAULTS,
        "x-limits": LIMITS,
        "x-refusals": _refusals(),
        "x-close-codes": _closes(),
    }


def _channel(channel: Channel) -> Json:
    key = {
        "type": "string",
        "description": "Your API key, unless you send it as api_key in the first message.",
    }
    headers = {"type": "object", "properties": {"X-API-Key": key}}
    return {
        "address": channel.kind.path,
        "title": channel.title,
        "description": channel.about,
        "messages": {
            kind.__name__: {"$ref": f"#/components/messages/{kind.__name__}"} for kind in channel.messages
        },
        "bindings": {"ws": {"method": "GET", "headers": headers, "bindingVersion": "0.1.0"}},
    }


def _operations(channel: Channel) -> Iterable[tuple[str, Json]]:
    """As AsyncAPI has them: what this service receives and sends."""
    name = channel.kind.name
    for asked, answer in ANSWERS.items():
        reply = _exchange(channel, (answer, protocol.Error))
        yield (
            f"{name}{asked.__name__}",
            {"action": "receive", **_exchange(channel, (asked,)), "reply": reply},
        )
    yield f"{name}Data", {"action": "send", **_exchange(channel, channel.data)}
    yield f"{name}Announcements", {"action": "send", **_exchange(channel, channel.announcements)}


def _exchange(channel: Channel, types: Types) -> Json:
    here = f"#/channels/{channel.kind.name}"
    return {
        "channel": {"$ref": here},
        "messages": [{"$ref": f"{here}/messages/{kind.__name__}"} for kind in types],
    }


def _message(kind: type[msgspec.Struct], examples: Json) -> Json:
    config = kind.__struct_config__
    about = {"summary": kind.__doc__} if kind.__doc__ else {}
    return {
        "name": config.tag if isinstance(config.tag, str) else kind.__name__,
        "title": kind.__name__,
        **about,
        "payload": {"$ref": f"#/components/schemas/{kind.__name__}"},
        "examples": [{"name": title, "payload": payload} for title, payload in examples.items()],
    }


def _refusals() -> list[Json]:
    return [
        {
            "code": code,
            "status": refusal.status,
            "close": refusal.close,
            "retry": refusal.can_retry,
            "message": refusal.message,
        }
        for code, refusal in REFUSALS.items()
    ]


def _closes() -> list[Json]:
    return [
        {"close": code, "retry": close.can_retry, "reason": close.reason}
        for code, close in sorted(CLOSES.items())
    ]
