"""The reference of REST, read from the OpenAPI document: operations and their fields."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe

from core.contract.openapi import content
from core.plain_json import spelled_out

from .rendering import highlighted, render_markdown, with_marks

# The fields of a JSON schema as rows of a table, for both references.
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


# The operations of REST as the OpenAPI document describes them, read once.
JSON = "application/json"


class Header(NamedTuple):
    name: str
    about: str
    example: str


class Parameter(NamedTuple):
    name: str
    place: str
    """Where it stands: `path`, `query` or `header`."""
    type: str
    is_required: bool
    about: SafeString
    words: list[str]
    """What it may be, if that can be listed."""
    default: str
    bounds: str
    example: str


class Example(NamedTuple):
    title: str
    body: str

    @property
    def html(self) -> SafeString:
        return highlighted(self.body, "json")


class RefusalExample(NamedTuple):
    code: str
    field: str
    """The parameter that is refused; empty where none is."""
    reason: str
    """Where there are several of one code."""
    body: str

    @property
    def html(self) -> SafeString:
        return highlighted(self.body, "json")


class Refusals(NamedTuple):
    status: str
    about: str
    codes: list[str]
    examples: list[RefusalExample]
    shared: str
    """The name of its component, if other operations have the same."""


class BodyForm(NamedTuple):
    media_type: str
    about: str


class Operation(NamedTuple):
    name: str
    label: str
    summary: str
    about: SafeString
    path: str
    tag: str
    parameters: list[Parameter]
    fields: list[Field]
    forms: list[BodyForm]
    examples: list[Example]
    headers: list[Header]
    """Those that only some operations send."""
    refusals: list[Refusals]

    @property
    def own_refusals(self) -> list[Refusals]:
        """Beyond those of every operation."""
        return [refusals for refusals in self.refusals if not refusals.shared]

    @property
    def address(self) -> str:
        return f"/docs/api/{self.name}"


class OperationGroup(NamedTuple):
    title: str
    about: str
    operations: list[Operation]


@cache
def whole() -> Json:
    # As it is read by others: the generator shares parts between its operations.
    found: Json = json.loads(json.dumps(content()))
    return found


@cache
def schemas() -> Schemas:
    return Schemas(whole()["components"]["schemas"])


@cache
def operations() -> dict[str, Operation]:
    read = [read_operation(path, methods["get"]) for path, methods in whole()["paths"].items()]
    return {operation.name: operation for operation in read}


@cache
def groups() -> list[OperationGroup]:
    return [
        OperationGroup(
            tag["name"],
            tag["description"],
            [each for each in operations().values() if each.tag == tag["name"]],
        )
        for tag in whole()["tags"]
    ]


def read_operation(path: str, found: Json) -> Operation:
    body = found["responses"]["200"]
    described = body["content"][JSON]
    shared = set.intersection(
        *(set(each["get"]["responses"]["200"]["headers"]) for each in whole()["paths"].values())
    )
    return Operation(
        name=found["operationId"],
        label=words_of(found["operationId"]),
        summary=found["summary"],
        about=prose(found.get("description", "")),
        path=path,
        tag=found["tags"][0],
        parameters=[read_parameter(each) for each in found.get("parameters", ())],
        fields=list(schemas().fields(described["schema"])),
        forms=[
            BodyForm(media_type, with_marks(form["schema"].get("description", "")))
            for media_type, form in body["content"].items()
            if media_type != JSON
        ],
        examples=read_examples(described),
        headers=[header(name) for name in body["headers"] if name not in shared],
        refusals=[
            read_refusals(status, answer)
            for status, answer in found["responses"].items()
            if status.isdigit() and int(status) >= 400
        ],
    )


def words_of(name: str) -> str:
    """`getOrderFlow` as it stands in a list: Get order flow."""
    return re.sub("(?<=[a-z])(?=[A-Z])", " ", name).capitalize()


def prose(text: str) -> SafeString:
    return render_markdown(text, lambda link: link).html


def read_parameter(found: Json) -> Parameter:
    schema = found["schema"]
    least, most = schema.get("minimum"), schema.get("maximum")
    examples = [example["value"] for example in found.get("examples", {}).values()]
    return Parameter(
        name=found["name"],
        place=found["in"],
        type=parameter_type(schema),
        is_required=found.get("required", False),
        about=prose(found["description"]),
        words=schema.get("enum", schema.get("items", {}).get("enum", [])),
        default=json.dumps(schema["default"]).strip('"') if schema.get("default") is not None else "",
        bounds=f"{least:,} to {most:,}" if least is not None and most is not None else "",
        example=str(examples[0]) if examples else "",
    )


def parameter_type(schema: Json) -> str:
    """A list of words is written with commas, and its words are shown by themselves."""
    if schema.get("type") == "array":
        return "comma-separated list"
    return "string" if "enum" in schema else schemas().type_words(schema)


def read_examples(described: Json) -> list[Example]:
    return [
        Example(each.get("summary", name), printed(each["value"]))
        for name, each in described.get("examples", {}).items()
    ]


def printed(value: Any) -> str:
    return spelled_out(json.dumps(value, ensure_ascii=False, indent=2).encode()).decode()


def read_refusals(status: str, answer: Json) -> Refusals:
    shared = last_part(answer["$ref"]) if "$ref" in answer else ""
    found = whole()["components"]["responses"][shared] if shared else answer
    responses = whole()["components"]["responses"].values()
    common = [] if shared else [each for response in responses for each in bodies_of(response)]
    described = found["content"][JSON]["examples"].values()
    examples = [
        RefusalExample(error["code"], error.get("field", ""), each.get("summary", ""), printed(each["value"]))
        for each in described
        if each["value"] not in common
        for error in [each["value"]["error"]]
    ]
    codes = dict.fromkeys(each.code for each in examples)
    return Refusals(status, with_marks(found["description"]), list(codes), examples, shared)


def bodies_of(answer: Json) -> list[Json]:
    return [each["value"] for each in answer["content"][JSON].get("examples", {}).values()]


@cache
def shared_refusals() -> list[Refusals]:
    """Those that any operation may answer with, described once."""
    found = {
        status: read_refusals(status, answer)
        for methods in whole()["paths"].values()
        for status, answer in methods["get"]["responses"].items()
        if status.isdigit() and "$ref" in answer
    }
    return [found[status] for status in sorted(found)]


def header(name: str) -> Header:
    found = whole()["components"]["headers"][name]
    schema = found["schema"]
    example = schema.get("examples", schema.get("enum", [""]))[0]
    return Header(name, with_marks(found["description"]), str(example))


@cache
def headers() -> list[Header]:
    return [header(name) for name in whole()["components"]["headers"]]
