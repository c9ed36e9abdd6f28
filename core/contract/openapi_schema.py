"""How an action's own description becomes an operation of the OpenAPI document."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from core.struct_schemas import Components, schema_of
from core.viewset import ApiViewSet

from .errors import ErrorBody
from .openapi_errors import EXAMPLE_TAG, Json, answer_headers, error_responses, part_responses
from .parameters import (
    LATEST_MS,
    SYMBOL,
    BooleanParameter,
    ChoiceParameter,
    IntegerParameter,
    SymbolListParameter,
    TimeParameter,
    WordListParameter,
)
from .schema import Description, descriptions

SINCE_1970 = "^(19[7-9]|[2-9])"


def in_path(name: str, description: str, *examples: str) -> OpenApiParameter:
    shown = [OpenApiExample(example, example) for example in examples]
    return OpenApiParameter(name, str, OpenApiParameter.PATH, description=description, examples=shown)


PATH_PARAMETERS = {
    "symbol": in_path("symbol", "Instrument code, in upper or lower case.", "EURUSD", "XAUUSD"),
    "id": in_path("id", "Identifier of a signal, as in the feed.", "0b7d1a9c-3a5e-4c86-8a43-5f0f5f3f1d77"),
    "user": in_path("user", "Publisher, as in the feed.", "marta"),
    "path": in_path(
        "path",
        "The path as listed, with its slashes unencoded.",
        "ticks/EURUSD/2026-11-20.parquet",
        "manifests/2026-11-20.json",
    ),
}


def in_header(name: str, description: str, example: str) -> OpenApiParameter:
    shown = [OpenApiExample(example, example)]
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, description=description, examples=shown)


OF_PARTS = (
    in_header("Range", "One range of bytes. A malformed range is ignored.", "bytes=0-1023"),
    in_header("If-Range", "The range only applies if the ETag is still this one.", EXAMPLE_TAG),
    in_header("If-None-Match", "ETags that the client already has.", EXAMPLE_TAG),
)


class ApiSchema(AutoSchema):
    """One operation. What has no description is left out, and tests/contract/openapi fails."""

    @property
    def described(self) -> Description:
        return descriptions[self._action()]

    def is_excluded(self) -> bool:
        return self._action() not in descriptions

    def get_operation_id(self) -> str:
        return self.described.name

    def get_summary(self) -> str:
        return self.described.summary

    def get_description(self) -> str:  # type: ignore[override]
        return self.described.details

    def get_tags(self) -> list[str]:
        return [self.described.tag]

    def get_auth(self) -> list[dict[str, list[str]]]:
        return [{"ApiKey": []}]

    def get_override_parameters(self) -> list[Any]:
        named = [PATH_PARAMETERS[name] for name in PATH_PARAMETERS if f"{{{name}}}" in self.path]
        conditions = OF_PARTS if self.described.has_parts else ()
        return [*named, *_query_parameters(self.described), *conditions]

    def get_response_serializers(self) -> Any:
        examples = [
            OpenApiExample(title, msgspec.to_builtins(value))
            for title, value in self.described.examples.items()
        ]
        return {200: OpenApiResponse(self.register(self.described.body), "Success.", examples)}

    def register(self, body: Any) -> Json:
        """Adds the components of a body to the document."""
        components: Components = {}
        schema = schema_of(body, components)
        for name, component in components.items():
            resolved = ResolvedComponent(name, ResolvedComponent.SCHEMA, component, object=name)  # type: ignore[no-untyped-call]
            self.registry.register_on_missing(resolved)
        return schema

    def _is_list_view(self, serializer: Any = None) -> bool:
        """Lists stand inside an object here, never by themselves."""
        return False

    def _get_response_bodies(self, direction: Any = "response") -> Json:
        self.register(ErrorBody)
        responses: Json = super()._get_response_bodies(direction)
        responses["200"]["headers"] = answer_headers(self.described)
        for media_type, description in self.described.other_forms.items():
            responses["200"]["content"][media_type] = {
                "schema": {"type": "string", "description": description}
            }
        if self.described.has_parts:
            responses |= part_responses(self.described, responses["200"]["content"])
        return responses | error_responses(self.described)

    def _action(self) -> Any:
        view = cast(ApiViewSet, self.view)
        return getattr(type(view), str(view.action))


def _query_parameters(description: Description) -> Iterator[OpenApiParameter]:
    for serializer in description.query:
        for name, field in serializer().fields.items():
            is_list = isinstance(field, WordListParameter | SymbolListParameter)
            yield OpenApiParameter(
                name,
                _parameter_schema(field),
                description=str(field.help_text),
                style="form" if is_list else None,
                explode=False if is_list else None,
            )


def _parameter_schema(field: serializers.Field[Any, Any, Any, Any]) -> Json:
    match field:
        case IntegerParameter():
            bounds = {"minimum": field.min_value, "maximum": field.max_value}
            return {"type": "integer", **bounds, "default": field.default}
        case BooleanParameter():
            return {"type": "boolean", "default": field.default == "true"}
        case ChoiceParameter():
            default = {} if field.default is None else {"default": field.default}
            return {"type": "string", "enum": field.words, **default}
        case WordListParameter():
            return {"type": "array", "minItems": 1, "items": {"type": "string", "enum": field.words}}
        case SymbolListParameter():
            return {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": f"^ *{SYMBOL} *$"}}
        case TimeParameter():
            epoch_ms = {"type": "integer", "minimum": 0, "maximum": LATEST_MS}
            texts = [{"type": "string", "format": each, "pattern": SINCE_1970} for each in field.formats]
            return {"oneOf": [*texts, epoch_ms]}
        case _:
            return {"type": "string"}
