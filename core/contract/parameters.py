"""Query parameters, read strictly: a bad one is refused by its name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import date, datetime
from functools import lru_cache
from re import fullmatch
from typing import Any, ClassVar, TypeVar, cast
from urllib.parse import parse_qsl

from rest_framework import serializers

from core.times import epoch_ms_after, iso_ms

from .errors import ApiError, InvalidParameter, ParameterOutOfRange

MAX_PARAMETERS = 300
LONGEST_REMEMBERED = 200
LONGEST_SYMBOL = 20
SYMBOL = rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_SYMBOL - 1}}}"
"""A possible symbol, in upper or lower case."""


class QueryParameter(serializers.Field[Any, str, Any, Any]):
    """One parameter of the query string."""

    refused: Sequence[str] = ()
    """One value for each way in which it can be refused, from which the reference makes its examples."""


class IntegerParameter(QueryParameter):
    """Plain ASCII digits within bounds. DRF's own field would accept `1_0`, `+5`, `٣` and `1.0`."""

    def __init__(self, *, default: int, max_value: int, min_value: int = 1, help_text: str = "") -> None:
        self.min_value, self.max_value = min_value, max_value
        self.refused = ("many", str(max_value + 1))
        super().__init__(default=default, help_text=help_text)

    def to_internal_value(self, data: str) -> int:
        name = str(self.field_name)
        if not (data.isascii() and data.isdigit()):
            raise InvalidParameter(
                f"{name} must be a whole number from {self.min_value} to {self.max_value}, in plain digits.",
                field=name,
                max=self.max_value,
            )
        # int() refuses thousands of digits with an error of its own.
        if len(data.lstrip("0")) > 9 or not self.min_value <= int(data) <= self.max_value:
            raise ParameterOutOfRange(
                f"{name} must be from {self.min_value} to {self.max_value}.", field=name, max=self.max_value
            )
        return int(data)


Words = Sequence[str] | Callable[[], Sequence[str]]
"""Words that are only known at the request come from a function."""


class ChoiceParameter(QueryParameter):
    """One of a few words, exactly."""

    refused = ("another",)

    def __init__(
        self,
        words: Words,
        *,
        default: str | None = None,
        refusal: type[InvalidParameter] = InvalidParameter,
        help_text: str = "",
    ) -> None:
        self._words, self._refusal = words, refusal
        super().__init__(default=default, help_text=help_text)

    @property
    def words(self) -> list[str]:
        return list(self._words() if callable(self._words) else self._words)

    def to_internal_value(self, data: str) -> str:
        words = self.words
        if data not in words:
            name = str(self.field_name)
            raise self._refusal(f"{name} must be one of {', '.join(words)}.", field=name, allowed=words)
        return data


class BooleanParameter(ChoiceParameter):
    def __init__(self, *, help_text: str = "") -> None:
        super().__init__(("true", "false"), default="false", help_text=help_text)


class ListParameter(QueryParameter):
    """A comma-separated list, which may also be given in several parts."""


class WordListParameter(ListParameter):
    """Drawn from a few words."""

    refused = ("another",)

    def __init__(self, words: Sequence[str], *, help_text: str = "") -> None:
        self.words = list(words)
        super().__init__(default=(), help_text=help_text)

    def to_internal_value(self, data: str) -> tuple[str, ...]:
        wanted = data.split(",")
        if not set(wanted) <= set(self.words):
            name = str(self.field_name)
            raise InvalidParameter(
                f"{name} must be a comma-separated list drawn from {', '.join(self.words)}.",
                field=name,
                allowed=self.words,
            )
        return tuple(dict.fromkeys(wanted))


class SymbolListParameter(ListParameter):
    """Symbols, which may have spaces around them; None where it is absent. Whether
    the instrument exists is checked later: only impossible symbols are refused here."""

    refused = ("EURUSD,,XAUUSD",)

    def __init__(self, *, help_text: str = "") -> None:
        super().__init__(default=None, help_text=help_text)

    def to_internal_value(self, data: str) -> list[str]:
        symbols = [each.strip(" ") for each in data.split(",")]
        if not all(fullmatch(SYMBOL, symbol) for symbol in symbols):
            name = str(self.field_name)
            raise InvalidParameter(
                f"{name} must be instrument codes separated by single commas, such as EURUSD,XAUUSD. A code "
                f"has up to {LONGEST_SYMBOL} characters: letters, digits, dots, dashes and underscores, of "
                "which the first is a letter or a digit.",
                field=name,
            )
        return symbols


class TextParameter(QueryParameter):
    """Any text, which is looked up rather than validated; None where it is absent."""

    def __init__(self, *, help_text: str = "") -> None:
        super().__init__(default=None, help_text=help_text)

    def to_internal_value(self, data: str) -> str:
        return data


class TimeParameter(QueryParameter):
    """A moment, as milliseconds since the epoch; None where it is absent. A day is its first moment. One
    between two milliseconds is the later: nothing that happened before it is taken for what came after."""

    refused = ("yesterday", "1969-12-31T23:59:59Z")
    examples: ClassVar[Sequence[str]] = ("2026-11-20", "2026-11-20T14:00:00Z", "1795183200000")
    takes: ClassVar[str] = (
        "a UTC day such as 2026-11-20, an ISO 8601 time with its zone, such as 2026-11-20T14:00:00Z (a + in "
        "it is written %2B), or milliseconds since the epoch"
    )

    def __init__(self, *, help_text: str = "") -> None:
        super().__init__(default=None, help_text=help_text)

    def to_internal_value(self, data: str) -> int:
        name = str(self.field_name)
        try:
            time_ms = read_moment(data)
        except ValueError:
            raise InvalidParameter(f"{name} must be {self.takes}.", field=name) from None
        if data.isdigit() and EARLIEST_SECONDS <= time_ms < LEAST_MS:
            raise InvalidParameter(
                f"{name} is in milliseconds, and {data} would be {iso_ms(time_ms)}. If these are seconds, "
                f"send {data}000.",
                field=name,
            )
        if day := written_as_number(data):
            raise InvalidParameter(
                f"{name} is in milliseconds, and {data} would be {iso_ms(time_ms)}. If this is a date, "
                f"send {day}.",
                field=name,
            )
        if not 0 <= time_ms <= LATEST_MS:
            raise ParameterOutOfRange(f"{name} must be from 1970 to 9999.", field=name)
        return time_ms


EARLIEST_SECONDS, LEAST_MS = 100_000_000, 100_000_000_000
"""A number between them is meant as a time in seconds, not milliseconds."""
EARLIEST_DAY = 19700101
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""


def read_moment(text: str) -> int:
    if text.isascii() and text.isdigit():
        # int() refuses thousands of digits with an error of its own.
        return int(text) if len(text) <= 18 else LATEST_MS + 1
    at = datetime.fromisoformat(f"{text}T00:00:00Z" if fullmatch(DAY, text) else text)
    if at.tzinfo is None:
        raise ValueError("no zone")
    return epoch_ms_after(at)


def written_as_number(text: str) -> date | None:
    """The day of a text such as 20261120, which ISO 8601 allows and which is never meant as milliseconds."""
    if not fullmatch("[0-9]{8}", text) or int(text) < EARLIEST_DAY:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def check_span(start_ms: int | None, end_ms: int | None, prefix: str = "") -> None:
    """One that is empty has an empty answer; one that ends before it begins is a mistake."""
    if start_ms is not None and end_ms is not None and end_ms < start_ms:
        raise InvalidParameter(f"{prefix}end must not be before {prefix}start.", field=f"{prefix}end")


class QuerySerializer(serializers.Serializer[Any]):
    """The parameters of one endpoint. Unknown names are ignored."""


def read_parameters(serializer: type[QuerySerializer], query_string: str) -> dict[str, Any]:
    """The validated parameters. They are cached, because pollers repeat the same query string."""
    read = _remembered if len(query_string) <= LONGEST_REMEMBERED else _read
    return read(serializer, query_string)


def _read(serializer: type[QuerySerializer], query_string: str) -> dict[str, Any]:
    query = serializer(data=_single_values(query_string, serializer))
    query.is_valid(raise_exception=True)
    return cast(dict[str, Any], query.validated_data)


def _single_values(query_string: str, serializer: type[QuerySerializer]) -> dict[str, str]:
    try:
        pairs = parse_qsl(query_string, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError:
        raise InvalidParameter(f"At most {MAX_PARAMETERS} parameters can be read.") from None
    known = serializer().fields
    values: dict[str, str] = {}
    for name, value in pairs:
        if name not in values or name not in known:
            values[name] = value
        elif isinstance(known[name], ListParameter):
            values[name] += f",{value}"
        else:
            raise InvalidParameter(f"{name} was given twice.", field=name)
    return values


_remembered = lru_cache(maxsize=2048)(_read)


# Descriptions of actions, from which the OpenAPI document is made. Requests never read them.
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
