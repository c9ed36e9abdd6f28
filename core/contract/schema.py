"""Descriptions of actions, from which the OpenAPI document is made. Requests never read them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeVar

from .errors import ApiError
from .parameters import QuerySerializer

Action = TypeVar("Action", bound=Callable[..., Any])


@dataclass(frozen=True)
class Description:
    """A decorator that leaves the action as it is, so that it costs a request nothing."""

    name: str
    body: Any
    """A Struct, or a named union of some: `Annotated[A | B, one_of(…)]`."""
    summary: str
    _: KW_ONLY
    tag: str
    examples: Mapping[str, Any]
    """Structs by title, as the action would answer with them."""
    details: str = ""
    query: Sequence[type[QuerySerializer]] = ()
    """Their refusals are the examples of the 400."""
    refusals: Sequence[ApiError] = ()
    """Refusals beyond bad parameters and those of every action."""
    headers: Sequence[str] = ()
    """Headers beyond those of every answer."""
    other_forms: Mapping[str, str] = field(default_factory=dict)
    """Media types beside JSON that a client may ask for, and what it gets."""

    has_parts: bool = False
    """Range is answered with 206, and If-None-Match with 304."""

    def __call__(self, action: Action) -> Action:
        descriptions[action] = self
        return action


describes = Description
descriptions: dict[Callable[..., Any], Description] = {}
