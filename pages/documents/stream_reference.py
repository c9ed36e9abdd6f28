"""The streams as the AsyncAPI document describes them, read once; and that document itself."""

import json
import re
from functools import cache
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponseBase
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from core.contract.answers import answer_document, encode_document
from core.plain_json import spelled_out
from market.streams.asyncapi import ANSWERS, CHANNELS, Scheme, document, servers
from market.streams.protocol.subscriptions import CONTROLS
from news.stream import CHANNEL as NEWS
from signals_feed.stream import CHANNEL as SIGNALS

from .reference import Field, Schemas, last_part
from .rendering import highlighted, with_marks

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
    return answer_document(request, encode_document(content() | {"servers": here}), names_address=True)


class MessageExample(NamedTuple):
    title: str
    frame: SafeString


class DescribedMessage(NamedTuple):
    anchor: str
    title: str
    name: str
    """Its `type` or `action`; empty if it has neither."""
    about: SafeString
    fields: list[Field]
    examples: list[MessageExample]


class DescribedStream(NamedTuple):
    name: str
    title: str
    path: str
    about: SafeString
    data: list[DescribedMessage]

    @property
    def address(self) -> str:
        return f"/docs/streams/{self.name}"


def describe_message(name: str) -> DescribedMessage:
    parts = content()["components"]
    found = parts["messages"][name]
    return DescribedMessage(
        anchor=name.lower(),
        title=re.sub("(?<=[a-z])(?=[A-Z])", " ", name).capitalize(),
        name="" if found["name"] == name else found["name"],
        about=with_marks(found["summary"]) if "summary" in found else SafeString(),
        fields=list(Schemas(parts["schemas"]).fields(found["payload"])),
        examples=[MessageExample(each["name"], example_frame(each["payload"])) for each in found["examples"]],
    )


def example_frame(payload: Json) -> SafeString:
    return highlighted(spelled_out(json.dumps(payload, ensure_ascii=False).encode()).decode(), "json")


def describe_stream(name: str, channel: Json) -> DescribedStream:
    references = content()["operations"][f"{name}Data"]["messages"]
    data = [describe_message(last_part(each["$ref"])) for each in references]
    return DescribedStream(
        name, channel["title"], channel["address"], with_marks(channel["description"]), data
    )


@cache
def described_streams() -> dict[str, DescribedStream]:
    return {name: describe_stream(name, channel) for name, channel in content()["channels"].items()}


@cache
def answers() -> list[DescribedMessage]:
    """What a client sends."""
    return [describe_message(kind.__name__) for kind in ANSWERS]


@cache
def controls() -> list[DescribedMessage]:
    """What a client hears besides the data."""
    return [describe_message(kind.__name__) for kind in CONTROLS]


@cache
def shared_words() -> dict[str, Any]:
    """The parts of the pages that are the same for all visitors."""
    whole = content()
    announced = {refusal["close"] for refusal in whole["x-refusals"]}
    return {
        "streams": list(described_streams().values()),
        "answers": answers(),
        "controls": controls(),
        "features": {name: with_marks(about) for name, about in whole["x-features"].items()},
        "limits": {with_marks(name): with_marks(about) for name, about in whole["x-limits"].items()},
        "refusals": whole["x-refusals"],
        # These come without an error before them.
        "closes": [close for close in whole["x-close-codes"] if close["close"] not in announced],
    }
