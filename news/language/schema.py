"""The JSON Schema of an answer, in the plain form that endpoints accept."""

from __future__ import annotations

from typing import Any

import msgspec

# Refused by strict modes. The bounds hold all the same: the answer is validated here.
NOT_IN_STRICT = {"minLength", "maxLength", "minItems", "maxItems", "title"}


def schema_of(shape: type[msgspec.Struct], *, strict: bool) -> dict[str, Any]:
    """The root has to be an object itself, not a reference to one."""
    (root,), definitions = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    name = root["$ref"].rpartition("/")[2]
    schema = definitions.pop(name)
    whole = schema | ({"$defs": definitions} if definitions else {})
    plain: dict[str, Any] = without(NOT_IN_STRICT, whole) if strict else whole
    return plain


def without(unwanted: set[str], schema: Any) -> Any:
    """The keywords are dropped; a property that has the name of one stays."""
    if isinstance(schema, list):
        return [without(unwanted, part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name not in unwanted}
    named = {"properties", "$defs"}
    return {
        name: {key: without(unwanted, part) for key, part in value.items()}
        if name in named
        else without(unwanted, value)
        for name, value in kept.items()
    }
