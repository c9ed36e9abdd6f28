"""The streams' document as a page: connect, say, hear, resume, and what is refused, in words and rows."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.models import Tier
from core.plain_json import spelled_out
from market.streams.docs.asyncapi import ANSWERS
from market.streams.protocol.replies import CONTROLS

from .asyncapi import content, scheme_of

Json = dict[str, Any]
TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}


class MessageField(NamedTuple):
    name: str
    type: str
    is_required: bool
    about: str


class MessageExample(NamedTuple):
    title: str
    frame: str


class DescribedMessage(NamedTuple):
    anchor: str
    title: str
    name: str
    """What its `type` or `action` is; empty where it has none."""
    about: str
    fields: list[MessageField]
    examples: list[MessageExample]


def describe_message(name: str, document: Json) -> DescribedMessage:
    told = document["components"]["messages"][name]
    schema = resolve_schema(told["payload"], document)
    return DescribedMessage(
        anchor=name.lower(),
        title=re.sub("(?<=[a-z])(?=[A-Z])", " ", name).capitalize(),
        name="" if told["name"] == name else told["name"],
        about=told.get("summary", ""),
        fields=list(message_fields(schema, document)),
        examples=[MessageExample(each["name"], example_frame(each["payload"])) for each in told["examples"]],
    )


def message_fields(schema: Json, document: Json, within: str = "") -> Iterator[MessageField]:
    """What is needed first, then what may be left out; under an object what is in it."""
    properties, required = schema["properties"], schema["required"]
    for name in sorted(properties, key=lambda name: name not in required):
        part = properties[name]
        yield MessageField(
            within + name, type_words(part, document), name in required, part.get("description", "")
        )
        inner = resolve_schema(part.get("items", part), document)
        if "properties" in inner:
            yield from message_fields(inner, document, f"{within}{name}.")


def example_frame(payload: Json) -> str:
    return spelled_out(json.dumps(payload, ensure_ascii=False).encode()).decode()


def resolve_schema(schema: Json, document: Json) -> Json:
    if "$ref" not in schema:
        return schema
    found: Json = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return found


def type_words(schema: Json, document: Json) -> str:
    if "anyOf" in schema:
        return " or ".join(type_words(part, document) for part in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    schema = resolve_schema(schema, document)
    if "properties" in schema:
        return "object"
    if schema["type"] == "array":
        return f"list of {type_words(schema['items'], document)}"
    if schema["type"] == "object":
        return f"{type_words(schema['additionalProperties'], document)} for each symbol"
    return TYPES[schema["type"]]


EXAMPLES = (
    ("Subscribe", '{"action": "subscribe", "symbols": ["BTCUSD"], "api_key": "KEY"}'),
    ("List", '{"action": "list", "id": 1}'),
    ("Ping", '{"action": "ping", "id": 2}'),
    ("Unsubscribe", '{"action": "unsubscribe", "symbols": ["BTCUSD"]}'),
    ("A mistake", '{"action": "subscribe", "symbols": "BTCUSD", "api_key": "KEY"}'),
)


class DescribedStream(NamedTuple):
    name: str
    title: str
    path: str
    about: str
    data: list[DescribedMessage]


def described_streams(document: Json) -> list[DescribedStream]:
    found = []
    for name, channel in document["channels"].items():
        references = document["operations"][f"{name}Data"]["messages"]
        data = [describe_message(each["$ref"].rsplit("/", 1)[1], document) for each in references]
        about = channel["description"].replace("`", "")
        found.append(DescribedStream(name, channel["title"], channel["address"], about, data))
    return found


@cache
def shared_words() -> dict[str, Any]:
    """All of the page that is the same for everybody."""
    document = content()
    return {
        "streams": described_streams(document),
        "said": [describe_message(kind.__name__, document) for kind in ANSWERS],
        "told": [describe_message(kind.__name__, document) for kind in CONTROLS],
        "features": document["x-features"],
        "limits": document["x-limits"],
        "refusals": document["x-refusals"],
        "closes": unannounced(document),
    }


def unannounced(document: Json) -> list[Json]:
    """Close codes that come without an error before them."""
    announced = {refusal["close"] for refusal in document["x-refusals"]}
    return [close for close in document["x-close-codes"] if close["close"] not in announced]


@require_safe
def streams_page(request: HttpRequest) -> HttpResponse:
    url = f"{scheme_of(request)}://{request.get_host()}/ws/market"
    page = {**shared_words(), "url": url, "tiers": Tier.objects.all(), **console(request)}
    return render(request, "docs/streams.html", page)


def console(request: HttpRequest) -> dict[str, Any]:
    """What the page's own socket needs: its key, where it may have one."""
    has_page_key = settings.DEMO or request.user.is_authenticated
    config = {"csrf": get_token(request) if has_page_key else "", "hasPageKey": has_page_key}
    return {"console": config, "has_page_key": has_page_key, "examples": EXAMPLES}
