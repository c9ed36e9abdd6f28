"""The OpenAPI document: which paths are in it, what stands around them, and how it is served."""

from functools import cache
from threading import Lock
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator

from core.viewset import ApiViewSet

from .answers import Document, answer_document, encode_document
from .openapi_errors import components

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
    result["info"]["description"] = ABOUT.read_text()
    if settings.CONTACT_EMAIL:
        result["info"]["contact"] = {"email": settings.CONTACT_EMAIL}
    result["components"] |= components() | {"securitySchemes": {"ApiKey": KEY_SCHEME}}
    return {part: result[part] for part in ("openapi", "info", "servers", "tags", "paths", "components")}


_making = Lock()


def document() -> Document:
    """Nothing in it changes while the process lives. The generator keeps its state in globals, so only one
    may run at a time."""
    with _making:
        return make_document()


@cache
def make_document() -> Document:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    return encode_document(generator.get_schema(public=True))  # type: ignore[no-untyped-call]


@require_safe
def openapi(request: HttpRequest) -> HttpResponseBase:
    return answer_document(request, document())
