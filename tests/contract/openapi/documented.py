"""The OpenAPI document, and what it says of a body."""

from __future__ import annotations

from typing import Any

import msgspec
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from core.contract.openapi import content

Json = dict[str, Any]

DOCUMENT: Json = msgspec.json.decode(msgspec.json.encode(content()))
SCHEMAS: dict[str, Json] = DOCUMENT["components"]["schemas"]


def operation(path: str) -> Json:
    found: Json = DOCUMENT["paths"][path]["get"]
    return found


def resolved(part: Json) -> Json:
    """The part itself, or what it refers to."""
    for name in part.get("$ref", "#").split("/")[1:]:
        part = (DOCUMENT if name == "components" else part)[name]
    return part


def response(path: str, status: int) -> Json:
    return resolved(operation(path)["responses"][str(status)])


def closed(part: Any) -> Any:
    """The same with no field but those that are named: clients must take more, and the service sends none."""
    if isinstance(part, list):
        return [closed(each) for each in part]
    if not isinstance(part, dict):
        return part
    found = {name: closed(each) for name, each in part.items()}
    is_object = part.get("type") == "object" and "properties" in part
    return found | {"additionalProperties": False} if is_object else found


COMPONENTS = {"schemas": closed(SCHEMAS)}


def problems(body: Any, schema: Json) -> list[str]:
    validator = Draft202012Validator({**schema, "components": COMPONENTS})
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(body)]


def is_valid(body: Any, name: str) -> bool:
    return not problems(body, {"$ref": f"#/components/schemas/{name}"})
