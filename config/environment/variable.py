"""One variable of the environment: what it may hold, and how its text is read."""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
MOST = 2_147_483_647
SHOWN = 60


class Variable(NamedTuple):
    name: str
    kind: str
    default: Any
    """None where it depends on other variables; `otherwise` says on what."""
    meaning: str
    otherwise: str = ""
    lowest: float | None = None
    highest: float | None = None
    among: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    read: Callable[[str], Any] | None = None
    is_secret: bool = False
    """Its value is shown nowhere, and NAME_FILE may name a file that holds it."""
    is_needed: bool = False
    """Production does not start without it."""

    def value_of(self, text: str) -> Any:
        """Raises ValueError with what is allowed, or ImproperlyConfigured with a sentence of its own."""
        return READERS[self.kind](self, text)

    def value_of_default(self) -> Any:
        return self.default if self.read is None or self.default is None else self.read(self.default)

    @property
    def allowed(self) -> str:
        return ALLOWED[self.kind](self)


class VariableGroup(NamedTuple):
    title: str
    variables: tuple[Variable, ...]


def text(name: str, default: str | None, meaning: str, **more: Any) -> Variable:
    return Variable(name, "text", default, meaning, **more)


def secret(name: str, meaning: str, default: str | None = "", **more: Any) -> Variable:
    return Variable(name, "text", default, meaning, is_secret=True, **more)


def address(name: str, default: str, meaning: str, *schemes: str) -> Variable:
    return Variable(name, "text", default, meaning, begins=tuple(f"{scheme}://" for scheme in schemes))


def whole(name: str, default: int | None, meaning: str, *, lowest: int = 0, **more: Any) -> Variable:
    return Variable(name, "whole", default, meaning, lowest=lowest, **more)


def number(name: str, default: float | None, meaning: str, *, lowest: float = 0, **more: Any) -> Variable:
    return Variable(name, "number", default, meaning, lowest=lowest, **more)


def switch(name: str, default: bool | None, meaning: str, **more: Any) -> Variable:
    return Variable(name, "switch", default, meaning, **more)


def words(name: str, default: tuple[str, ...] | None, meaning: str, **more: Any) -> Variable:
    return Variable(name, "words", default, meaning, **more)


def _text(variable: Variable, given: str) -> Any:
    if variable.among:
        # However it is written, the settings have it as it stands in the table.
        return {each.lower(): each for each in variable.among}[given.strip().lower()]
    if variable.begins and not (given.startswith(variable.begins) and _has_host(given)):
        raise ValueError
    return variable.read(given) if variable.read else given


def _has_host(address: str) -> bool:
    """Raises ValueError for a port that is none."""
    parts = urlsplit(address)
    return bool(parts.hostname and (parts.port is None or parts.port) and not re.search(r"\s", address))


def _whole(variable: Variable, given: str) -> int:
    return int(_within(variable, int(given)))


def _number(variable: Variable, given: str) -> float:
    return float(_within(variable, float(given)))


def _within(variable: Variable, value: float) -> float:
    if math.isnan(value) or value < (variable.lowest or 0) or value > (variable.highest or math.inf):
        raise ValueError
    if value > MOST:
        raise ImproperlyConfigured(f"{variable.name} should be at most {MOST}.")
    return value


def _switch(variable: Variable, given: str) -> bool:
    return {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}[given.strip().lower()]


def _words(variable: Variable, given: str) -> list[str]:
    # A file has one on each line, and there a comma is a letter like any other.
    separator = "\n" if "\n" in given else ","
    found = [word for part in given.split(separator) if (word := part.strip())]
    return [variable.read(word) for word in found] if variable.read else found


READERS: dict[str, Callable[[Variable, str], Any]] = {
    "text": _text,
    "whole": _whole,
    "number": _number,
    "switch": _switch,
    "words": _words,
}


def _text_allowed(variable: Variable) -> str:
    if variable.begins:
        return f"an address that begins with {' or '.join(variable.begins)}"
    return " or ".join(variable.among) or "text"


def _range(variable: Variable) -> str:
    lowest = f"{variable.lowest or 0:g}"
    return f"from {lowest} to {variable.highest}" if variable.highest else f"of {lowest} or more"


ALLOWED: dict[str, Callable[[Variable], str]] = {
    "text": _text_allowed,
    "whole": lambda variable: f"a whole number {_range(variable)}",
    "number": lambda variable: f"a number {_range(variable)}",
    "switch": lambda variable: "1 or 0 (or true, yes, on; false, no, off)",
    "words": lambda variable: "names with commas between them",
}
