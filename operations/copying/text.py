"""Values as text: one form for each, whichever database it was read from. It is the text form of PostgreSQL's
COPY: columns apart by tabs, `\\N` for none, backslashes before what would be misread."""

import json
import re
from collections.abc import Callable
from decimal import Context, Decimal

NONE = r"\N"
ESCAPES = {"\\": r"\\", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
MEANT = {escape[1]: letter for letter, escape in ESCAPES.items()}
ESCAPED = re.compile(r"\\(.)")
TO_ESCAPE = re.compile(r"[\\\b\f\n\r\t\v]")

# SQLite keeps decimals as binary fractions, of which as many digits count.
SQLITE_DIGITS = 15
# From here on a binary fraction is a whole number, and PostgreSQL writes it as one.
WHOLE_FROM = 1e16


def escaped(text: str) -> str:
    return TO_ESCAPE.sub(lambda found: ESCAPES[found.group()], text)


def unescaped(text: str) -> str:
    return ESCAPED.sub(lambda found: MEANT.get(found.group(1), found.group(1)), text)


def fields_of(line: str) -> list[str | None]:
    fields = line.split("\t")
    if "\\" not in line:
        return list(fields)
    return [None if field == NONE else unescaped(field) if "\\" in field else field for field in fields]


def plain_json(text: str) -> str:
    """Keys in order and without spaces, because PostgreSQL keeps neither as they were written."""
    value = json.loads(text, parse_float=_fraction)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _fraction(text: str) -> float | int:
    value = float(text)
    return int(value) if abs(value) >= WHOLE_FROM else value


def plain_real(text: str | float) -> str:
    return repr(float(text))


def plain_decimal(value: float | int | str | None, places: int) -> str | None:
    """As Django reads it from SQLite: what a binary fraction adds after its digits is not part of it."""
    if value is None:
        return None
    if isinstance(value, float):
        value = Context(prec=SQLITE_DIGITS).create_decimal_from_float(value)  # type: ignore[assignment]
    exact = Decimal(value).quantize(Decimal(1).scaleb(-places), context=Context(prec=60))
    return f"{exact + 0:f}"


def digits_of(text: str) -> int:
    """How many count of a decimal in its text form."""
    return len(text.lstrip("-").replace(".", "").strip("0"))


def plain_moment(text: str | None) -> str | None:
    """Of SQLite's text, which leaves out what is nought."""
    if text is None:
        return None
    whole, _, fraction = text.removesuffix("+00:00").replace("T", " ").partition(".")
    return f"{whole}.{fraction:0<6}"


# What is made plain after PostgreSQL wrote it as text: the others it writes so already.
AFTER_POSTGRESQL: dict[str, Callable[[str], str]] = {"json": plain_json, "real": plain_real}
