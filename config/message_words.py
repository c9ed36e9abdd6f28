"""A message of the AsyncAPI document in words and rows, for people. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from accounts.plain_json import spelled_out

Json = dict[str, Any]
TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}


class Field(NamedTuple):
    name: str
    type: str
    is_required: bool
    about: str


class Example(NamedTuple):
    title: str
    frame: str


class Message(NamedTuple):
    anchor: str
    title: str
    name: str
    """What its `type` or `action` is; empty where it has none."""
    about: str
    fields: list[Field]
    examples: list[Example]


def described(name: str, document: Json) -> Message:
    told = document["components"]["messages"][name]
    schema = resolved(told["payload"], document)
    return Message(
        anchor=name.lower(),
        title=re.sub("(?<=[a-z])(?=[A-Z])", " ", name).capitalize(),
        name="" if told["name"] == name else told["name"],
        about=told.get("summary", ""),
        fields=list(fields(schema, document)),
        examples=[Example(each["name"], frame(each["payload"])) for each in told["examples"]],
    )


def fields(schema: Json, document: Json, within: str = "") -> Iterator[Field]:
    """What is needed first, then what may be left out; under an object what is in it."""
    properties, required = schema["properties"], schema["required"]
    for name in sorted(properties, key=lambda name: name not in required):
        part = properties[name]
        yield Field(within + name, type_of(part, document), name in required, part.get("description", ""))
        inner = resolved(part.get("items", part), document)
        if "properties" in inner:
            yield from fields(inner, document, f"{within}{name}.")


def frame(payload: Json) -> str:
    return spelled_out(json.dumps(payload, ensure_ascii=False).encode()).decode()


def resolved(schema: Json, document: Json) -> Json:
    if "$ref" not in schema:
        return schema
    found: Json = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return found


def type_of(schema: Json, document: Json) -> str:
    if "anyOf" in schema:
        return " or ".join(type_of(part, document) for part in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    schema = resolved(schema, document)
    if "properties" in schema:
        return "object"
    if schema["type"] == "array":
        return f"list of {type_of(schema['items'], document)}"
    if schema["type"] == "object":
        return f"{type_of(schema['additionalProperties'], document)} for each symbol"
    return TYPES[schema["type"]]
