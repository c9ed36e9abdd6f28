"""What an action says of itself: the OpenAPI document is made of it, requests never read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from .errors import ApiError
from .parameters import QuerySerializer

CODES = (
    "missing_api_key",
    "invalid_api_key",
    "https_required",
    "symbol_not_found",
    "not_found",
    "method_not_allowed",
    "invalid_parameter",
    "invalid_timeframe",
    "parameter_out_of_range",
    "rate_limit_exceeded",
    "ai_quota_exceeded",
    "model_unavailable",
    "quote_unavailable",
    "overloaded",
    "internal_error",
)


class RefusalSerializer(serializers.Serializer[Any]):
    code = serializers.ChoiceField(choices=CODES, help_text="Stable: what a program should look at.")
    message = serializers.CharField(help_text="For people; may change.")
    status = serializers.IntegerField(min_value=400, max_value=599, help_text="The HTTP status once more.")
    field = serializers.CharField(required=False, help_text="The parameter that was refused.")
    allowed = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="The words it may be."
    )
    max = serializers.IntegerField(required=False, help_text="The largest number it may be.")
    request_id = serializers.CharField(help_text="The header X-Request-Id once more.")


class BodySerializer(serializers.Serializer[Any]):
    """The body of an answer, with examples of it by title."""

    examples: ClassVar[dict[str, Any]] = {}


class ErrorSerializer(BodySerializer):
    """Whatever goes wrong, the body has this shape."""

    error = RefusalSerializer()


Action = TypeVar("Action", bound=Callable[..., Any])


@dataclass(frozen=True)
class OneOf:
    """A body of one of several kinds, which one of its fields tells apart."""

    serializer: PolymorphicProxySerializer
    examples: dict[str, Any]


Body = type[BodySerializer] | OneOf


@dataclass(frozen=True)
class Description:
    name: str
    tag: str
    summary: str
    details: str
    body: Body
    query: tuple[type[QuerySerializer], ...]
    refused_queries: tuple[str, ...]
    """Query strings that are refused: what they get are the examples of the 400."""
    refusals: tuple[ApiError, ...]
    """What it refuses beyond a bad parameter and what every action refuses."""
    headers: tuple[str, ...]
    """What it sends beyond the headers of every answer."""


descriptions: dict[Callable[..., Any], Description] = {}


def describes(
    name: str,
    body: Body,
    summary: str,
    *,
    tag: str,
    details: str = "",
    query: Sequence[type[QuerySerializer]] = (),
    refused_queries: Sequence[str] = (),
    refusals: Sequence[ApiError] = (),
    headers: Sequence[str] = (),
) -> Callable[[Action], Action]:
    """Beside the action and not around it: describing costs a request nothing."""
    described = Description(
        name=name,
        tag=tag,
        summary=summary,
        details=details,
        body=body,
        query=tuple(query),
        refused_queries=tuple(refused_queries),
        refusals=tuple(refusals),
        headers=tuple(headers),
    )

    def remember(action: Action) -> Action:
        descriptions[action] = described
        return action

    return remember
