"""The OpenAPI document: its paths, their shared parts, and how it is served."""

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from threading import Lock
from typing import Any, cast

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from core.struct_schemas import Components, schema_of
from core.viewset import ApiViewSet

from .answers import (
    EXAMPLE_TAG,
    HEADERS,
    REQUEST_ID,
    SOMETIMES,
    Document,
    Json,
    address_of,
    answer_document,
    encode_document,
)
from .errors import (
    ApiError,
    ErrorBody,
    HttpsRequired,
    InternalError,
    InvalidApiKey,
    MissingApiKey,
    Overloaded,
    RateLimitExceeded,
    UnknownHost,
    refusal_body,
)
from .parameters import (
    SYMBOL,
    BooleanParameter,
    ChoiceParameter,
    Description,
    IntegerParameter,
    ListParameter,
    QueryParameter,
    QuerySerializer,
    SymbolListParameter,
    TimeParameter,
    WordListParameter,
    descriptions,
    read_parameters,
)

# Which headers and errors a response of the OpenAPI document has. Its error bodies are real: each is the
# answer to a refusal that the code itself raises.
OF_EVERY_ANSWER = ("X-Request-Id", "X-API-Version")
OF_THE_WINDOW = (
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "RateLimit-Policy",
    "RateLimit",
)
OF_AI_CALLS = {"X-AI-Limit", "X-AI-Remaining", "X-AI-Reset"}
MEANINGS = {
    400: "A parameter or the header `Host` is invalid; the body names it and what is allowed.",
    401: "The API key is missing or not valid.",
    403: "The key was sent without TLS, or its tier does not include this.",
    404: "Nothing exists by the name in the path or in a parameter.",
    406: "The path offers none of the formats in the Accept header.",
    416: "The range begins after the end.",
    429: "The allowance of the last 60 seconds, or of AI calls today, is used up, or too many requests "
    "without a valid key came from your address.",
    500: "The service failed.",
    503: "The service cannot answer at the moment.",
}

# These are the same for every action, so they are components under these names.
SHARED = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    429: "TooManyRequests",
    500: "InternalError",
    503: "Unavailable",
}
OTHERWISE = "Failed"
# Of one code, so each has a name and a reason of its own.
LIMITED: dict[str, tuple[str, ApiError]] = {
    "rate_limit_exceeded": (
        "Your account has used up its requests",
        RateLimitExceeded("The Pro tier allows 120 requests a minute. Try again in 12 s.", retry_after=12),
    ),
    "rate_limit_exceeded.without_key": (
        "Too many requests without a valid key",
        RateLimitExceeded(
            "Too many requests without a valid API key from this address. Try again in 12 s.", retry_after=12
        ),
    ),
}
EVERYWHERE: tuple[ApiError, ...] = (
    UnknownHost(),
    MissingApiKey(),
    InvalidApiKey(),
    HttpsRequired(),
    *(error for _, error in LIMITED.values()),
    InternalError(),
    Overloaded(retry_after=1),
)


def components() -> Json:
    headers = {name: _header(name, required=name not in SOMETIMES) for name in HEADERS}
    responses: Json = {
        name: _response(status, [error for error in EVERYWHERE if error.status_code == status])
        for status, name in SHARED.items()
    }
    responses[OTHERWISE] = {
        "description": "Any other error, in the same form.",
        "headers": _references(OF_EVERY_ANSWER),
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    return {"headers": headers, "responses": responses}


def answer_headers(description: Description) -> Json:
    return _references((*OF_EVERY_ANSWER, *OF_THE_WINDOW, *description.headers))


def part_responses(description: Description, whole: Json) -> Json:
    forms = {media_type: {"schema": {"type": "string"}} for media_type in whole}
    headers = answer_headers(description)
    return {
        "206": {
            "description": "The part that `Range` asks for.",
            "headers": headers | _references(["Content-Range"]),
            "content": forms,
        },
        "304": {"description": "The client already has it.", "headers": headers},
    }


def error_responses(description: Description) -> Json:
    own = [*_refused(description), *description.refusals]
    responses: Json = {}
    for status in sorted(MEANINGS):
        refusals = [error for error in own if error.status_code == status]
        if refusals:
            shared = [error for error in EVERYWHERE if error.status_code == status]
            responses[str(status)] = _response(status, [*refusals, *shared])
            # A refusal that comes before the account is known has none of these.
            optional = [name for name in description.headers if name in OF_AI_CALLS]
            responses[str(status)]["headers"] |= {name: _header(name, required=False) for name in optional}
        elif status in SHARED:
            responses[str(status)] = {"$ref": f"#/components/responses/{SHARED[status]}"}
    return responses | {"default": {"$ref": f"#/components/responses/{OTHERWISE}"}}


def _refused(description: Description) -> Iterable[ApiError]:
    """Of every parameter, one for each code and field."""
    found: dict[str, ApiError] = {}
    for serializer in description.query:
        for name, parameter in serializer().fields.items():
            wrong = [f"{name}={value}" for value in cast(QueryParameter, parameter).refused]
            twice = [] if isinstance(parameter, ListParameter) else [f"{name}=A&{name}=B"]
            for query_string in (*wrong, *twice):
                error = _refusal(serializer, query_string)
                found.setdefault(_title(error), error)
    return found.values()


def _refusal(serializer: type[QuerySerializer], query_string: str) -> ApiError:
    try:
        read_parameters(serializer, query_string)
    except ApiError as error:
        return error
    raise ValueError(f"{serializer.__name__} does not refuse {query_string}.")


def _response(status: int, refusals: list[ApiError]) -> Json:
    examples = {_title(error): _example(error) for error in refusals}
    schema = {"$ref": "#/components/schemas/Error"}
    return {
        "description": MEANINGS[status],
        "headers": _error_headers(status),
        "content": {"application/json": {"schema": schema, "examples": examples}},
    }


def _example(error: ApiError) -> Json:
    example: Json = {"value": msgspec.json.decode(refusal_body(error, REQUEST_ID))}
    for reason, each in LIMITED.values():
        if each is error:
            example = {"summary": reason, **example}
    return example


def _title(error: ApiError) -> str:
    for name, (_, each) in LIMITED.items():
        if each is error:
            return name
    return f"{error.code}.{error.field}" if error.status_code == 400 else error.code


def _error_headers(status: int) -> Json:
    if status == 401:
        return _references((*OF_EVERY_ANSWER, "WWW-Authenticate"))
    # These can come before the caller is known, and then there is no window to report.
    window = {name: _header(name, required=False) for name in OF_THE_WINDOW}
    if status == 403:
        return _references(OF_EVERY_ANSWER) | window
    if status == 416:
        return _references((*OF_EVERY_ANSWER, *OF_THE_WINDOW, "Content-Range"))
    if status < 429:
        return _references((*OF_EVERY_ANSWER, *OF_THE_WINDOW))
    return _references(OF_EVERY_ANSWER if status == 500 else (*OF_EVERY_ANSWER, "Retry-After")) | window


def _references(names: Iterable[str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _header(name: str, *, required: bool) -> Json:
    description, schema = HEADERS[name]
    return {"description": description, "required": required, "schema": schema}


KEY_SCHEME = {
    "type": "apiKey",
    "in": "header",
    "name": "X-API-Key",
    "description": "Issued in the settings panel. It starts with `tw_live_`.",
}
ABOUT = settings.BASE_DIR / "templates" / "docs" / "about.md"
Endpoint = tuple[str, str, str, Any]


def keep_api_paths(endpoints: list[Endpoint]) -> list[Endpoint]:
    """Our own viewsets only, their paths without the optional slash at the end."""
    return [
        (path.rstrip("/"), regex, method, view)
        for path, regex, method, view in endpoints
        if issubclass(view.cls, ApiViewSet)
    ]


def complete(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add what all operations share, and put everything in reading order."""
    result["info"] |= {"description": ABOUT.read_text(), "license": {"name": "MIT", "identifier": "MIT"}}
    if settings.CONTACT_EMAIL:
        result["info"]["contact"] = {"email": settings.CONTACT_EMAIL}
    result["components"] |= components() | {"securitySchemes": {"ApiKey": KEY_SCHEME}}
    return {part: result[part] for part in ("openapi", "info", "servers", "tags", "paths", "components")}


_making = Lock()


def content() -> Json:
    """Nothing in it changes while the process lives. The generator keeps its state in globals, so only one
    may run at a time."""
    with _making:
        return make_content()


@cache
def make_content() -> Json:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    made: Json = generator.get_schema(public=True)  # type: ignore[no-untyped-call]
    return made


@lru_cache(maxsize=8)
def document_at(address: str) -> Document:
    """Most generators need an absolute address."""
    servers = [server | {"url": address} for server in content()["servers"]]
    return encode_document(content() | {"servers": servers})


@require_safe
def openapi(request: HttpRequest) -> HttpResponseBase:
    return answer_document(request, document_at(address_of(request)), names_address=True)


# How an action's own description becomes an operation of the OpenAPI document.
def in_path(name: str, description: str, *examples: str) -> OpenApiParameter:
    shown = [OpenApiExample(example, example) for example in examples]
    return OpenApiParameter(name, str, OpenApiParameter.PATH, description=description, examples=shown)


PATH_PARAMETERS = {
    "symbol": in_path("symbol", "Instrument code, in upper or lower case.", "EURUSD", "XAUUSD"),
    "id": in_path("id", "Identifier of a signal, as in the feed.", "0b7d1a9c-3a5e-4c86-8a43-5f0f5f3f1d77"),
    "user": in_path("user", "Publisher, as in the feed.", "marta"),
    "path": in_path(
        "path",
        "The path as listed. Its slashes may be percent-encoded.",
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
            is_list = isinstance(field, ListParameter)
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
            return {"type": "string", "examples": list(field.examples)}
        case _:
            return {"type": "string"}
