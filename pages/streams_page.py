"""The AsyncAPI document of this host's streams, for programs, and as a page for people."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.models import Tier
from core.contract.answers import answer_document, encode_document
from core.plain_json import spelled_out
from market.streams.docs.asyncapi import ANSWERS, CHANNELS, Scheme, document, servers
from market.streams.protocol.replies import CONTROLS
from news.stream import CHANNEL as NEWS
from signals_feed.stream import CHANNEL as SIGNALS

Json = dict[str, Any]


def scheme_of(request: HttpRequest) -> Scheme:
    return "wss" if request.is_secure() else "ws"


@cache
def content() -> Json:
    """Made once, because only the address differs, and a caller can make up any number of names and ports."""
    return document((*CHANNELS, SIGNALS, NEWS), "localhost")


@require_safe
def asyncapi(request: HttpRequest) -> HttpResponseBase:
    here = servers(request.get_host(), scheme_of(request))
    return answer_document(request, encode_document(content() | {"servers": here}))


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
    """Its `type` or `action`; empty if it has neither."""
    about: str
    fields: list[MessageField]
    examples: list[MessageExample]


def describe_message(name: str) -> DescribedMessage:
    found = content()["components"]["messages"][name]
    return DescribedMessage(
        anchor=name.lower(),
        title=re.sub("(?<=[a-z])(?=[A-Z])", " ", name).capitalize(),
        name="" if found["name"] == name else found["name"],
        about=found.get("summary", ""),
        fields=list(message_fields(resolve_schema(found["payload"]))),
        examples=[MessageExample(each["name"], example_frame(each["payload"])) for each in found["examples"]],
    )


def message_fields(schema: Json, within: str = "") -> Iterator[MessageField]:
    """Required fields come before optional ones, and an object before what is in it."""
    properties, required = schema["properties"], schema["required"]
    for name in sorted(properties, key=lambda name: name not in required):
        part = properties[name]
        about = part.get("description", "")
        yield MessageField(within + name, type_words(part), name in required, about)
        inner = resolve_schema(part.get("items", part))
        if "properties" in inner:
            yield from message_fields(inner, f"{within}{name}.")


def example_frame(payload: Json) -> str:
    return spelled_out(json.dumps(payload, ensure_ascii=False).encode()).decode()


def resolve_schema(schema: Json) -> Json:
    if "$ref" not in schema:
        return schema
    found: Json = content()["components"]["schemas"][last_part(schema["$ref"])]
    return found


def last_part(reference: str) -> str:
    return reference.rsplit("/", 1)[1]


def type_words(schema: Json) -> str:
    if "anyOf" in schema:
        return " or ".join(map(type_words, schema["anyOf"]))
    if "enum" in schema:
        return " or ".join(map(json.dumps, schema["enum"]))
    schema = resolve_schema(schema)
    if "properties" in schema:
        return "object"
    if schema["type"] == "array":
        return f"list of {type_words(schema['items'])}"
    if schema["type"] == "object":
        return f"{type_words(schema['additionalProperties'])} for each symbol"
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


def describe_stream(name: str, channel: Json) -> DescribedStream:
    references = content()["operations"][f"{name}Data"]["messages"]
    data = [describe_message(last_part(each["$ref"])) for each in references]
    return DescribedStream(
        name, channel["title"], channel["address"], channel["description"].replace("`", ""), data
    )


@cache
def shared_words() -> dict[str, Any]:
    """The parts of the page that are the same for everybody."""
    whole = content()
    announced = {refusal["close"] for refusal in whole["x-refusals"]}
    return {
        "streams": [describe_stream(*named) for named in whole["channels"].items()],
        "answers": [describe_message(kind.__name__) for kind in ANSWERS],
        "controls": [describe_message(kind.__name__) for kind in CONTROLS],
        "features": whole["x-features"],
        "limits": whole["x-limits"],
        "refusals": whole["x-refusals"],
        # These come without an error before them.
        "closes": [close for close in whole["x-close-codes"] if close["close"] not in announced],
    }


@require_safe
def streams_page(request: HttpRequest) -> HttpResponse:
    # The page's own socket needs a key, which somebody without an account has in the demo only.
    has_page_key = settings.DEMO or request.user.is_authenticated
    console = {"csrf": get_token(request) if has_page_key else "", "hasPageKey": has_page_key}
    page = {
        **shared_words(),
        "url": f"{scheme_of(request)}://{request.get_host()}/ws/market",
        "tiers": Tier.objects.all(),
        "console": console,
        "has_page_key": has_page_key,
        "examples": EXAMPLES,
    }
    return render(request, "docs/streams.html", page)
