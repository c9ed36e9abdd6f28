from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType

from core.struct_schemas import Components, Date, Moment, one_of, openapi, schema_of


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Point(msgspec.Struct):
    component: ClassVar[str] = "Dot"

    x: Annotated[float, Meta(ge=0, le=1, description="To the right.")]
    colour: Colour
    label: str | UnsetType = UNSET


class Circle(msgspec.Struct):
    kind: Literal["circle"]
    centre: Annotated[Point, Meta(description="Where it is.")]


class Line(msgspec.Struct):
    kind: Literal["line"]
    points: list[Point]
    end: Annotated[Point | None, Meta(description="None of an endless one.")]


Shape = Annotated[Circle | Line, one_of("Shape", "kind")]


def described(hint: Any) -> tuple[Any, Components]:
    components: Components = {}
    return schema_of(hint, components), components


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (int, {"type": "integer"}),
        (bool | None, {"type": ["boolean", "null"]}),
        (Literal["b", "a"], {"type": "string", "enum": ["b", "a"]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Date, {"type": "string", "format": "date"}),
        (
            Annotated[Moment | None, Meta(description="Then.")],
            {"type": ["string", "null"], "format": "date-time", "pattern": "Z$", "description": "Then."},
        ),
        (
            list[Annotated[int, openapi(minimum=1)]],
            {"type": "array", "items": {"type": "integer", "minimum": 1}},
        ),
        (Annotated[str, Meta(pattern="^a$")], {"type": "string", "pattern": "^a$"}),
    ],
)
def test_field_has_the_schema_of_its_type(hint: Any, schema: Any) -> None:
    assert described(hint) == (schema, {})


def test_structs_are_components_and_a_union_of_them_is_told_apart_by_one_field() -> None:
    schema, components = described(list[Shape])
    shape, circle, line, dot = (
        {"$ref": f"#/components/schemas/{name}"} for name in ("Shape", "Circle", "Line", "Dot")
    )
    assert schema == {"type": "array", "items": shape}
    assert components["Shape"] == {
        "oneOf": [circle, line],
        "discriminator": {
            "propertyName": "kind",
            "mapping": {"circle": circle["$ref"], "line": line["$ref"]},
        },
    }
    assert components["Dot"] == {
        "type": "object",
        "properties": {
            "x": {
                "type": "number",
                "format": "double",
                "minimum": 0,
                "maximum": 1,
                "description": "To the right.",
            },
            "colour": {"type": "string", "enum": ["red", "blue"]},
            "label": {"type": "string"},
        },
        "additionalProperties": False,
        "required": ["colour", "x"],
    }
    assert components["Circle"]["properties"]["centre"] == {"allOf": [dot], "description": "Where it is."}
    assert components["Line"]["properties"] == {
        "kind": {"type": "string", "enum": ["line"]},
        "points": {"type": "array", "items": dot},
        "end": {"oneOf": [dot, {"type": "null"}], "description": "None of an endless one."},
    }
    for hint in (Circle | Line, dict[str, int]):
        with pytest.raises(TypeError):
            described(hint)


def test_only_openapi_says_what_is_for_it_alone() -> None:
    class Frame(msgspec.Struct):
        user: Annotated[str, openapi(description="Publisher.")]
        time: Moment

    schemas = msgspec.json.schema(Frame)["$defs"]
    assert schemas["Frame"]["properties"] == {"user": {"type": "string"}, "time": {"type": "string"}}
