"""In which form a client takes an answer: what the headers Accept and Accept-Encoding say of it."""

from collections.abc import Iterator, Sequence
from typing import Any

from core.request_headers import header

from .errors import NotAcceptable


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
