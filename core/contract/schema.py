"""What an action says of itself: the OpenAPI document is made of it, requests never read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from drf_spectacular.utils import PolymorphicProxySerializer
from rest_framework import serializers

from .errors import ApiError
from .parameters import QuerySerializer


class BodySerializer(serializers.Serializer[Any]):
    """The body of an answer, with examples of it by title."""

    examples: ClassVar[dict[str, Any]] = {}


Action = TypeVar("Action", bound=Callable[..., Any])


@dataclass(frozen=True)
class OneOf:
    """A body of one of several kinds, which one of its fields tells apart."""

    serializer: PolymorphicProxySerializer
    examples: dict[str, Any]


@dataclass(frozen=True)
class Description:
    name: str
    tag: str
    summary: str
    details: str
    body: Any
    """A Struct, or a named union of some: `Annotated[A | B, one_of(…)]`."""
    examples: Mapping[str, Any]
    """By title: Structs, as the action answers them."""
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
    body: Any,
    summary: str,
    *,
    tag: str,
    examples: Mapping[str, Any] | None = None,
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
        examples=body.examples if examples is None else examples,
        query=tuple(query),
        refused_queries=tuple(refused_queries),
        refusals=tuple(refusals),
        headers=tuple(headers),
    )

    def remember(action: Action) -> Action:
        descriptions[action] = described
        return action

    return remember
