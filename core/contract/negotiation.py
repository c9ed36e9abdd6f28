"""Content negotiation, and how many streamed bodies may be open."""

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakSet

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request

from core.request_headers import header

from .errors import NotAcceptable, Overloaded


class FirstOffered(BaseContentNegotiation):
    """Neither `Accept` nor `format` changes the form of an answer. A path with several forms refuses a bad
    `Accept` after everything else that is wrong, and therefore chooses in its action."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


def chosen_type(scope: dict[str, Any], offered: Sequence[str]) -> str:
    """The one that the client likes best; of those that it likes equally, the first that is offered."""
    accept = header(scope, b"accept")
    if accept is None or not accept.strip():
        return offered[0]
    asked = dict(_weighed(accept))
    best = max(offered, key=lambda name: _weight_of_type(name, asked))
    if not _weight_of_type(best, asked):
        raise none_of(offered)
    return best


def none_of(offered: Sequence[str]) -> NotAcceptable:
    return NotAcceptable(
        f"Accept names none of the formats that this path offers: {', '.join(offered)}.",
        field="Accept",
        allowed=offered,
    )


def takes_gzip(scope: dict[str, Any]) -> bool:
    asked = dict(_weighed(header(scope, b"accept-encoding") or ""))
    anything = asked.get("*", 0.0)
    weight = max(asked.get(name, anything) for name in ("gzip", "x-gzip"))
    return weight > 0 and weight >= asked.get("identity", 0.0)


def _weight_of_type(name: str, asked: dict[str, float]) -> float:
    """What is named most closely counts: with `text/*;q=0, text/csv` only the last may be text."""
    family = f"{name.partition('/')[0]}/*"
    return next((asked[each] for each in (name, family, "*/*") if each in asked), 0.0)


def _weighed(value: str) -> Iterator[tuple[str, float]]:
    for part in value.split(","):
        name, *parameters = (each.strip().lower() for each in part.split(";"))
        weights = [each[2:] for each in parameters if each.startswith("q=")]
        if name:
            yield name, _weight(weights[0]) if weights else 1.0


def _weight(text: str) -> float:
    """One that cannot be read is as if it were absent."""
    digits = text.replace(".", "", 1)
    return min(float(text), 1.0) if digits.isascii() and digits.isdigit() else 1.0


# Bodies on their way: how many there may be at the same time, of an account and in a process.
class OpenBody:
    def __init__(self, counted_under: str) -> None:
        self.counted_under = counted_under


class OpenBodies:
    """Those of this process. One leaves the set when it is no longer being sent, whatever its outcome."""

    def __init__(self, most_of_account: int, most: int, too_many: str, retry_after: int) -> None:
        """`too_many` is the message for an account at its limit."""
        self._most_of_account, self._most = most_of_account, most
        self._too_many, self._retry_after = too_many, retry_after
        self._open: WeakSet[OpenBody] = WeakSet()

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, counted_under: str) -> OpenBody:
        """Call it before the first await, or simultaneous requests all pass the check."""
        own = sum(body.counted_under == counted_under for body in self._open)
        if own >= self._most_of_account:
            raise Overloaded(self._too_many, retry_after=self._retry_after)
        if len(self._open) >= self._most:
            raise Overloaded(retry_after=self._retry_after)
        body = OpenBody(counted_under)
        self._open.add(body)
        return body

    def leave(self, body: OpenBody) -> None:
        self._open.discard(body)
