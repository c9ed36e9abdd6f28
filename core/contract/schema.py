"""What an action says of itself: the OpenAPI document is made of it, requests never read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar

from .errors import ApiError
from .parameters import QuerySerializer

Action = TypeVar("Action", bound=Callable[..., Any])


@dataclass(frozen=True)
class Description:
    """Stands above the action and not around it: describing costs a request nothing."""

    name: str
    body: Any
    """A Struct, or a named union of some: `Annotated[A | B, one_of(…)]`."""
    summary: str
    _: KW_ONLY
    tag: str
    examples: Mapping[str, Any]
    """By title: Structs, as the action answers them."""
    details: str = ""
    query: Sequence[type[QuerySerializer]] = ()
    refused_queries: Sequence[str] = ()
    """Query strings that are refused: what they get are the examples of the 400."""
    refusals: Sequence[ApiError] = ()
    """What it refuses beyond a bad parameter and what every action refuses."""
    headers: Sequence[str] = ()
    """What it sends beyond the headers of every answer."""

    def __call__(self, action: Action) -> Action:
        descriptions[action] = self
        return action


describes = Description
descriptions: dict[Callable[..., Any], Description] = {}
