"""JSON Schemas of the Structs on the wire, in the form that the OpenAPI document has them."""

import types
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

Json = dict[str, Any]
Components = dict[str, Json]

BASIC: dict[Any, Json] = {
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number", "format": "double"},
    str: {"type": "string"},
}
KEYWORDS = {"description": "description", "ge": "minimum", "le": "maximum", "pattern": "pattern"}


def openapi(**keywords: Any) -> Meta:
    """Keywords for the OpenAPI document alone, not for AsyncAPI."""
    return Meta(extra={"openapi": keywords})


def one_of(component: str, discriminator: str) -> Meta:
    """Names a union of Structs that a field with one word for each tells apart."""
    return Meta(extra={"component": component, "discriminator": discriminator})


# No pattern beside a format: generators read a moment into a type of its own, which no pattern fits.
Moment = Annotated[str, openapi(format="date-time")]
Date = Annotated[str, openapi(format="date")]
Symbol = Annotated[str, Meta(description="Instrument code.")]


def schema_of(hint: Any, components: Components) -> Json:
    """The schema of a type. The Structs it refers to are added to the components."""
    if hint in BASIC:
        return dict(BASIC[hint])
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _of_annotated(arguments[0], arguments[1:], components)
    if origin in (Union, types.UnionType):
        return _of_union(arguments, components)
    if origin is Literal:
        return {**BASIC[type(arguments[0])], "enum": list(arguments)}
    if origin in (list, tuple, Sequence):
        return {"type": "array", "items": schema_of(arguments[0], components)}
    return _of_struct(hint, components)


def _of_struct(struct: type[msgspec.Struct], components: Components) -> Json:
    fields = msgspec.structs.fields(struct)
    # The name of the class, unless it says `component: ClassVar[str] = "…"`.
    name = str(vars(struct).get("component", struct.__name__))
    if name not in components:
        components[name] = {}  # It may contain itself.
        components[name] |= {
            "type": "object",
            "properties": {field.encode_name: schema_of(field.type, components) for field in fields},
        }
        if required := sorted(field.encode_name for field in fields if field.default is not UNSET):
            components[name]["required"] = required
    return {"$ref": f"#/components/schemas/{name}"}


def _of_union(kinds: tuple[Any, ...], components: Components) -> Json:
    # Several kinds need a name: Annotated[…, one_of(…)].
    (kind,) = (kind for kind in kinds if kind not in (UnsetType, types.NoneType))
    schema = schema_of(kind, components)
    if types.NoneType not in kinds:
        return schema
    if "$ref" in schema:
        return {"oneOf": [schema, {"type": "null"}]}
    return schema | {"type": [schema["type"], "null"]}


def _of_annotated(hint: Any, annotations: tuple[Any, ...], components: Components) -> Json:
    metas = [meta for meta in annotations if isinstance(meta, Meta)]
    extras = [meta.extra or {} for meta in metas]
    named = next((extra for extra in extras if "component" in extra), None)
    schema = _of_kinds(get_args(hint), named, components) if named else schema_of(hint, components)
    for meta, extra in zip(metas, extras, strict=True):
        keywords = {word: getattr(meta, name) for name, word in KEYWORDS.items()}
        given = {word: value for word, value in keywords.items() if value is not None}
        given |= extra.get("openapi", {})
        if given and "$ref" in schema:
            schema = {"allOf": [schema]}
        schema |= given
    return schema


def _of_kinds(kinds: tuple[type[msgspec.Struct], ...], named: Json, components: Components) -> Json:
    name, discriminator = named["component"], named["discriminator"]
    if name not in components:
        references = [schema_of(kind, components) for kind in kinds]
        words = [get_args(get_type_hints(kind)[discriminator])[0] for kind in kinds]
        components[name] = {
            "oneOf": references,
            "discriminator": {
                "propertyName": discriminator,
                "mapping": {word: found["$ref"] for word, found in zip(words, references, strict=True)},
            },
        }
    return {"$ref": f"#/components/schemas/{name}"}
