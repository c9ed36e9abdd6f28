from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from jsonschema import Draft7Validator  # type: ignore[import-untyped]
from msgspec import Struct

from market.streams.asyncapi import CHANNELS, document
from market.streams.protocol.messages import (
    CHAOS,
    CLOSES,
    FEATURES,
    KINDS,
    REFUSALS,
    AnyMessage,
    Code,
    StreamRefused,
)
from market.streams.protocol.reading import read
from market.streams.protocol.subscriptions import CONTROLS
from news.stream import CHANNEL as NEWS
from signals_feed.stream import CHANNEL as SIGNALS

DOCUMENT = document((*CHANNELS, SIGNALS, NEWS), "tickwire.example")
MESSAGES = DOCUMENT["components"]["messages"]
SCHEMAS = DOCUMENT["components"]["schemas"]
CLIENT_KINDS: tuple[type[Struct], ...] = get_args(AnyMessage)
EXAMPLES = [
    pytest.param(name, example["payload"], id=f"{name}: {example['name']}")
    for name, message in MESSAGES.items()
    for example in message["examples"]
]
CLIENT_NAMES = {kind.__name__ for kind in CLIENT_KINDS}
CLIENT_EXAMPLES = [found for found in EXAMPLES if found.values[0] in CLIENT_NAMES]

# As the specification lists them, in its order.
SPECIFIED = {
    "PriceTick": ["symbol", "bid", "ask", "spread", "time", "volume"],
    "OrderFlowTick": ["symbol", "bid_volume", "ask_volume", "delta", "cumulative_delta", "price", "time"],
    "CandleUpdate": ["symbol", "timeframe", "candle", "closed", "time"],
    "NewSignal": [
        *("id", "user", "symbol", "direction", "entry", "stop_loss", "take_profit", "timestamp"),
        "time",
    ],
    "PublishedNews": ["title", "category", "sentiment", "sentiment_score", "timestamp", "id", "time"],
}

# Signals and news have no numbers: they are resumed by their ids.
EXTRAS = {"NewSignal": ["sent"], "PublishedNews": ["sent"]}
# These concern the whole socket.
UNNAMED = {"Ping", "Pong", "Heartbeat"}


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for inner in node.values():
            yield from references(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from references(inner)


def resolve(reference: str) -> Any:
    found: Any = DOCUMENT
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_field_has_a_description(name: str) -> None:
    fields = SCHEMAS[name].get("properties", {})
    # What a message is, its `type` or `action` says with its only value.
    tags = {tag for tag in ("type", "action") if len(fields.get(tag, {}).get("enum", ())) == 1}
    assert [field for field in fields.keys() - tags if not fields[field].get("description")] == []


def test_document_is_asyncapi_3_and_plain_json_with_a_channel_for_every_stream() -> None:
    assert DOCUMENT["asyncapi"] == "3.0.0"
    assert DOCUMENT["servers"] == {"tickwire": {"host": "tickwire.example", "protocol": "wss"}}
    assert json.loads(json.dumps(DOCUMENT)) == DOCUMENT
    assert "\\n  " not in json.dumps(DOCUMENT)
    addresses = {name: channel["address"] for name, channel in DOCUMENT["channels"].items()}
    names = ["market", "orderflow", "candles", "signals", "news"]
    assert addresses == {name: f"/ws/{name}" for name in names} | {"all": "/ws"}
    assert list(addresses.values()) == [*(kind.path for kind in KINDS), "/ws"]


def test_every_reference_leads_somewhere() -> None:
    found = set(references(DOCUMENT))

    assert len(found) > 50
    assert all(resolve(reference) for reference in found)


def test_every_message_is_in_it() -> None:
    data = {"PriceTick", "OrderFlowTick", "AbsorptionSignal", "CandleUpdate"}
    data |= {"NewSignal", "SignalClosed", "PublishedNews"}

    assert set(MESSAGES) == CLIENT_NAMES | {kind.__name__ for kind in CONTROLS} | data


def test_every_message_is_sent_or_received_where_its_channel_has_it() -> None:
    for name, channel in DOCUMENT["channels"].items():
        exchanged = {
            reference
            for operation in DOCUMENT["operations"].values()
            if operation["channel"]["$ref"] == f"#/channels/{name}"
            for part in (operation, operation.get("reply", {"messages": []}))
            for reference in references(part["messages"])
        }
        assert exchanged == {f"#/channels/{name}/messages/{message}" for message in channel["messages"]}


@pytest.mark.parametrize("name", DOCUMENT["channels"])
def test_what_a_client_says_alone_is_received_and_answered_by_its_reply_or_an_error(name: str) -> None:
    def names(messages: Any) -> list[str]:
        return [reference.rsplit("/", 1)[1] for reference in references(messages)]

    answers = {
        tuple(names(operation["messages"])): names(operation["reply"]["messages"])
        for operation in DOCUMENT["operations"].values()
        if operation["channel"]["$ref"] == f"#/channels/{name}" and operation["action"] == "receive"
    }

    assert answers == {
        ("Subscribe",): ["Subscribed", "Error"],
        ("Unsubscribe",): ["Unsubscribed", "Error"],
        ("List",): ["Listed", "Error"],
        ("Ping",): ["Pong", "Error"],
    }


def test_moments_and_numbers_of_frames_are_long() -> None:
    fields = [SCHEMAS["PriceTick"]["properties"][name] for name in ("time", "seq", "sent")]

    assert [field["format"] for field in fields] == ["int64"] * 3


def test_gap_and_conflated_are_told_only_where_they_occur() -> None:
    having = {
        message: {name for name, channel in DOCUMENT["channels"].items() if message in channel["messages"]}
        for message in ("Gap", "Conflated", "AbsorptionSignal", "SignalClosed")
    }

    assert having == {
        "Gap": {"market", "orderflow", "candles", "all"},
        "Conflated": {"market", "all"},
        "AbsorptionSignal": {"orderflow", "all"},
        "SignalClosed": {"signals", "all"},
    }


def test_every_message_but_those_of_the_whole_socket_can_name_its_stream() -> None:
    assert {name for name in MESSAGES if "stream" not in SCHEMAS[name]["properties"]} == UNNAMED


def test_every_refusal_close_code_and_feature_is_in_it() -> None:
    codes = list(get_args(Code))

    code = SCHEMAS["ErrorDetails"]["properties"]["code"]
    assert (code["type"], "enum" in code) == ("string", False)
    assert [each for each in codes if each not in code["description"]] == []
    assert [refusal["code"] for refusal in DOCUMENT["x-refusals"]] == list(REFUSALS)
    assert [close["close"] for close in DOCUMENT["x-close-codes"]] == sorted(CLOSES)
    shown = {example["payload"]["error"]["code"] for example in MESSAGES["Error"]["examples"]}
    assert shown == set(codes)
    assert tuple(DOCUMENT["x-features"]) == FEATURES + CHAOS


@pytest.mark.parametrize("name", SPECIFIED)
def test_data_has_exactly_the_specified_fields(name: str) -> None:
    schema = SCHEMAS[name]

    assert schema["required"] == SPECIFIED[name]
    assert list(schema["properties"]) == [*SPECIFIED[name], *EXTRAS.get(name, ["seq", "sent"]), "stream"]
    assert list(MESSAGES[name]["examples"][0]["payload"]) == SPECIFIED[name]
    assert "seq" not in SCHEMAS["SignalClosed"]["properties"]


@pytest.mark.parametrize(("name", "payload"), EXAMPLES)
def test_example_is_valid_and_not_without_a_required_field(name: str, payload: dict[str, Any]) -> None:
    reference = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": SCHEMAS}}
    validator = Draft7Validator(reference)

    validator.validate(payload)
    assert set(payload) <= set(SCHEMAS[name]["properties"])
    for field in SCHEMAS[name]["required"]:
        assert not validator.is_valid({**payload, field: None})
        assert not validator.is_valid({key: payload[key] for key in payload if key != field})


@pytest.mark.parametrize(("name", "payload"), CLIENT_EXAMPLES)
def test_example_of_what_a_client_says_is_understood(name: str, payload: dict[str, Any]) -> None:
    understood = set()
    for kind in KINDS:
        with contextlib.suppress(StreamRefused):
            understood.add(type(read(json.dumps(payload).encode(), kind)).__name__)

    assert understood == {name}
