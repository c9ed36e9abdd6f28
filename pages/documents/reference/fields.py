"""The fields of a JSON schema as rows of a table, for both references."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe

from ..rendering import with_marks

Json = dict[str, Any]
DEEPEST = 4
"""Beyond it a body is shown by its example alone."""

PLAIN = ("string", "number", "integer", "boolean", "object", "time", "date")


class Field(NamedTuple):
    name: str
    type: str
    is_required: bool
    about: SafeString

    @property
    def breakable_name(self) -> SafeString:
        """It may be broken after each dot."""
        return format_html_join(mark_safe(".<wbr>"), "{}", ((part,) for part in self.name.split(".")))

    @property
    def breakable_type(self) -> SafeString:
        """It may be broken within a name, before each capital: NewsCalibration."""
        return format_html_join(
            mark_safe("<wbr>"), "{}", ((part,) for part in re.split("(?<=[a-z])(?=[A-Z])", self.type))
        )


class Schemas:
    """The schemas of a document by name, to which a part of it may refer."""

    def __init__(self, named: Json) -> None:
        self.named = named

    def resolve(self, schema: Json) -> Json:
        if "allOf" in schema:
            # A reference with a description beside it.
            (schema,) = schema["allOf"]
        found: Json = self.named[last_part(schema["$ref"])] if "$ref" in schema else schema
        return found

    def fields(self, schema: Json, within: str = "") -> Iterator[Field]:
        """Required fields come before optional ones, and an object before what is in it."""
        properties, required = self.properties(schema)
        for name in sorted(properties, key=lambda name: name not in required):
            part = properties[name]
            about = with_marks(part.get("description", ""))
            yield Field(within + name, self.type_words(part), name in required, about)
            if within.count(".") < DEEPEST:
                yield from self.fields(part.get("items", part), f"{within}{name}.")

    def properties(self, schema: Json) -> tuple[Json, set[str]]:
        """Of one of several bodies: what any of them has, and what all of them must have."""
        schema = self.resolve(schema)
        several: list[Json] = schema.get("oneOf") or schema.get("anyOf") or []
        kinds = [self.properties(each) for each in several]
        if not kinds:
            return schema.get("properties", {}), set(schema.get("required", ()))
        kinds = [kind for kind in kinds if kind[0]]
        parts: dict[str, list[Json]] = {}
        for properties, _ in kinds:
            for name, part in properties.items():
                parts.setdefault(name, []).append(part)
        every = {name: any_of(found) for name, found in parts.items()}
        return every, set.intersection(*(required for _, required in kinds)) if kinds else set()

    def type_words(self, schema: Json) -> str:
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return " or ".join(dict.fromkeys(map(self.type_words, schema[several])))
        if "enum" in schema:
            return " or ".join(map(json.dumps, schema["enum"]))
        schema = self.resolve(schema)
        if "oneOf" in schema or "anyOf" in schema:
            return self.type_words(schema)
        return self.plain_type(schema)

    def items_words(self, items: Json) -> str:
        """Objects by the name that they have in the document, and so in the clients; others in the plural."""
        words = self.type_words(items)
        if words.startswith('"'):
            return f"any of {', '.join(words.split(' or '))}"
        if words == "object" and "$ref" in items:
            return last_part(items["$ref"])
        first, space, others = words.partition(" ")
        return f"{first}s{space}{others}" if words in PLAIN or words.startswith("array of") else words

    def plain_type(self, schema: Json) -> str:
        if schema.get("type") == "array":
            return f"array of {self.items_words(schema['items'])}"
        if schema.get("type") == "object" and "properties" not in schema:
            return f"map of strings to {self.items_words(schema['additionalProperties'])}"
        if schema.get("format") in ("date-time", "date"):
            return {"date-time": "time", "date": "date"}[schema["format"]]
        kind = schema.get("type", "object")
        return " or ".join(kind) if isinstance(kind, list) else str(kind)


def any_of(parts: list[Json]) -> Json:
    """A field that several bodies have, each with its own values."""
    different = [part for at, part in enumerate(parts) if part not in parts[:at]]
    if len(different) == 1:
        return different[0]
    abouts = [part["description"] for part in different if "description" in part]
    return {"oneOf": different, **({"description": abouts[0]} if abouts else {})}


def last_part(reference: str) -> str:
    return reference.rsplit("/", 1)[1]
