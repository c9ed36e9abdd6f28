"""The OpenAPI document against the specification: paths, parameters, fields and statuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import msgspec
import pytest
from django.core.management import call_command
from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.validation import validate_schema

from accounts.models import TIER_LIMITS, Tier
from analysis.built_in import IDENTIFIER as ANALYST
from core.contract import openapi
from core.contract.errors import CODES, ApiError
from market.api.symbols import EXPANSIONS
from news.sentiment.linear import FILE as LINEAR_MODEL
from tests.patience import PATIENCE_S

from .documented import DOCUMENT, SCHEMAS, is_valid, operation, resolved, response

Json = dict[str, Any]

SYMBOL = "^ *[A-Za-z0-9][A-Za-z0-9._-]{0,19} *$"
TEXT: tuple[str, Json] = ("query", {"type": "string"})
TIMEFRAMES = ["1m", "5m", "15m", "1h", "4h", "1d"]
CATEGORIES = ["forex", "gold", "crypto", "macro"]
NEWS_EXTRAS = ["id", "url", "source", "summary", "symbols", "model"]


def up_to_500(default: int) -> tuple[str, Json]:
    return "query", {"type": "integer", "minimum": 1, "maximum": 500, "default": default}


def one_of(words: list[str], default: str) -> tuple[str, Json]:
    return "query", {"type": "string", "enum": words, "default": default}


def list_of(words: list[str]) -> tuple[str, Json]:
    return "query", {"type": "array", "minItems": 1, "items": {"type": "string", "enum": words}}


MOMENT = ("query", {"type": "string", "examples": ["2026-11-20", "2026-11-20T14:00:00Z", "1795183200000"]})


SPAN = dict.fromkeys(("start", "end"), MOMENT)
RANGE = SPAN | {"cursor": TEXT}
# Beside what stands in the path.
PARAMETERS: dict[str, dict[str, tuple[str, Json]]] = {
    "/api/symbols": {"expand": list_of([*EXPANSIONS])},
    "/api/market/{symbol}": {
        "timeframe": one_of(TIMEFRAMES, "1h"),
        "bars": up_to_500(100),
        "closed_only": ("query", {"type": "boolean", "default": False}),
        "expand": list_of(["basis"]),
    },
    "/api/market/{symbol}/history": {
        "timeframe": one_of(TIMEFRAMES, "1m"),
        "limit": ("query", {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 1_000}),
        "expand": list_of(["basis"]),
        **RANGE,
    },
    "/api/market/{symbol}/ticks": {
        "limit": ("query", {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 1_000}),
        **RANGE,
    },
    "/api/quotes": {
        "symbols": (
            "query",
            {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": SYMBOL}},
        )
    },
    "/api/orderflow/{symbol}": {"limit": up_to_500(100), **RANGE},
    "/api/signals": {
        "status": one_of(["active", "closed", "all"], "active"),
        "limit": up_to_500(50),
        "symbol": TEXT,
        "user": TEXT,
        **dict.fromkeys(("closed_start", "closed_end"), MOMENT),
        **RANGE,
    },
    "/api/signals/ledger": {
        "after": ("query", {"type": "integer", "minimum": 0, "maximum": 999_999_999, "default": 0}),
        "limit": up_to_500(50),
    },
    "/api/news": {
        "category": list_of(CATEGORIES),
        "limit": up_to_500(20),
        "expand": list_of(NEWS_EXTRAS),
        **RANGE,
    },
    "/api/analysis/{symbol}": {"model": ("query", {"type": "string", "enum": ["tickwire-analyst-1"]})},
    "/api/archive": {
        "kind": ("query", {"type": "string", "enum": ["candles", "manifest", "ticks"]}),
        "limit": up_to_500(100),
        "symbol": TEXT,
        **RANGE,
    },
    "/api/archive/{path}": dict.fromkeys(
        ("Range", "If-Range", "If-None-Match"), ("header", {"type": "string"})
    ),
}
# Fields that not every answer has.
OPTIONAL = {
    "Evidence": {*("bid", "ask", "bid_open", "bid_high", "bid_low", "ask_high", "ask_low", "best", "worst")},
    "Refusal": {"field", "max", "allowed"},
    "Candle": {"basis", "partial"},
    "Instrument": set(EXPANSIONS),
    "NewsItem": set(NEWS_EXTRAS),
    "SignalList": {"next"},
    "NewsList": {"next"},
    "OrderFlow": {"next"},
}


def routes(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern).removeprefix("^").removesuffix("/?$")
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, route)
        else:
            yield "/" + re.sub(r"\(\?P<(\w+)>(?:\[\^/\]\+|\.\+\?)\)", r"{\1}", route)


def test_document_is_valid_openapi_3_1_of_the_server_it_comes_from_with_keys_in_a_header() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    validate_schema(DOCUMENT)  # type: ignore[no-untyped-call]
    scheme = DOCUMENT["components"]["securitySchemes"]["ApiKey"]
    assert (scheme["type"], scheme["in"], scheme["name"]) == ("apiKey", "header", "X-API-Key")


def parts(node: Any) -> Iterator[Json]:
    if isinstance(node, dict):
        yield node
    for part in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from parts(part)


def test_generated_client_reads_whatever_version_1_may_come_to_send() -> None:
    schemas = [part for part in parts(DOCUMENT) if isinstance(part.get("type"), str | list)]
    assert [part for part in schemas if "pattern" in part and "format" in part] == []
    assert [part for part in schemas if "additionalProperties" in part] == []
    long = [part for part in schemas if "integer" in part["type"] and part.get("maximum", 2**31) >= 2**31]
    assert long
    assert [part for part in long if part.get("format") != "int64"] == []
    codes = [part["properties"]["code"] for part in schemas if "code" in part.get("properties", ())]
    assert [code["type"] for code in codes if "enum" not in code] == ["string", "string"]
    assert [
        code for code in CODES if code not in SCHEMAS["Refusal"]["properties"]["code"]["description"]
    ] == []


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_each_operation_has_an_answer_for_other_statuses(path: str) -> None:
    other = resolved(operation(path)["responses"]["default"])
    assert other["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Error"}


def test_document_is_made_without_a_warning(tmp_path: Path) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "openapi.yaml"))


def test_document_has_exactly_the_paths_that_are_served() -> None:
    served = {route for route in routes(get_resolver().url_patterns) if route.startswith("/api/")}
    assert set(DOCUMENT["paths"]) == served


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_parameters_are_those_of_the_specification(path: str) -> None:
    parameters = operation(path).get("parameters", [])
    in_path = dict.fromkeys(re.findall(r"{(\w+)}", path), ("path", {"type": "string"}))
    told = {each["name"]: (each["in"], each["schema"]) for each in parameters}
    assert told == in_path | PARAMETERS.get(path, {})
    for each in parameters:
        assert each["description"]
        assert each.get("required", False) is (each["in"] == "path")
        if each["schema"].get("type") == "array":
            assert (each["style"], each["explode"]) == ("form", False)
    assert list(DOCUMENT["paths"][path]) == ["get"]
    assert operation(path)["security"] == [{"ApiKey": []}]


@pytest.mark.parametrize("name", SCHEMAS)
def test_fields_are_always_there_but_for_a_few_and_described(name: str) -> None:
    fields = SCHEMAS[name].get("properties", {})
    assert set(fields) - set(SCHEMAS[name].get("required", [])) == OPTIONAL.get(name, set())
    assert [field for field, schema in fields.items() if not schema.get("description")] == []


def test_words_of_a_field_are_those_of_the_contract() -> None:
    def words(schema: str, field: str) -> list[str]:
        return list(SCHEMAS[schema]["properties"][field]["enum"])

    assert words("Instrument", "type") == ["forex", "commodity", "crypto", "index", "stock"]
    assert words("Market", "timeframe") == TIMEFRAMES
    assert words("ActiveSignal", "direction") == ["buy", "sell"]
    assert words("NewsItem", "category") == CATEGORIES
    assert words("NewsItem", "sentiment") == ["bullish", "neutral", "bearish"]


def test_active_signal_has_no_result_and_a_closed_one_all_of_it() -> None:
    bodies = operation("/api/signals")["responses"]["200"]["content"]["application/json"]["examples"]
    active, closed = bodies["BothKinds"]["value"]["items"]
    assert is_valid(active, "Signal")
    assert is_valid(closed, "Signal")
    assert not is_valid(active | {"pnl": 1.0}, "Signal")
    assert not is_valid({name: value for name, value in closed.items() if name != "pnl_r"}, "Signal")
    assert not is_valid(active | {"status": "closed"}, "Signal")


def refusals(kind: type[ApiError] = ApiError) -> Iterator[type[ApiError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from refusals(narrower)


def test_document_knows_every_code_that_is_raised() -> None:
    # The door for pushed ticks, which has a page of its own, and our pages' tokens are no part of it.
    # Bodies, which no path of the contract takes, and requests for streams are refused before it.
    apart = (
        "config.asgi",
        "market.push.",
        "accounts.login.sessions",
        "pages.handler",
    )
    raised = {kind.code for kind in refusals() if not kind.__module__.startswith(apart)}
    unlisted = sorted(raised - set(CODES))
    assert not unlisted, f"raised, but not in CODES of core/contract/errors.py: {', '.join(unlisted)}"
    untold = [code for code in CODES if f"`{code}`" not in DOCUMENT["info"]["description"]]
    assert not untold, f"in CODES, but not under Errors in templates/docs/about.md: {', '.join(untold)}"


def test_example_of_the_session_names_models_that_there_are() -> None:
    (example,) = operation("/api/session")["responses"]["200"]["content"]["application/json"][
        "examples"
    ].values()
    assert example["value"]["ai_models_available"] == [ANALYST, LINEAR_MODEL.stem]


@pytest.mark.django_db
def test_table_of_limits_is_that_of_the_tiers() -> None:
    """It is written by hand, because the document is made without a database."""
    lines = re.findall(
        r"^\| (.+) \|$", DOCUMENT["info"]["description"].partition("## Errors")[0], re.MULTILINE
    )
    head, *rows = [line.split(" | ") for line in lines]
    way_out = f"templates/docs/about.md: under Limits each tier has a column for each of {list(TIER_LIMITS)}"
    assert len(head) == 1 + len(TIER_LIMITS), way_out
    assert rows == [[str(tier), *(str(most) for _, most in tier.limits())] for tier in Tier.objects.all()], (
        way_out
    )


def test_each_reason_for_waiting_has_an_example() -> None:
    examples = response("/api/symbols", 429)["content"]["application/json"]["examples"]
    assert {name: each["summary"] for name, each in examples.items()} == {
        "rate_limit_exceeded": "Your account has used up its requests",
        "rate_limit_exceeded.without_key": "Too many requests without a valid key",
    }
    ai_calls = response("/api/analysis/{symbol}", 429)["content"]["application/json"]["examples"]
    assert set(ai_calls) == {"ai_quota_exceeded", *examples}


def test_many_that_ask_first_get_the_same_document() -> None:
    crowd = 12
    openapi.make_content.cache_clear()
    barrier = Barrier(crowd)

    def ask(_: int) -> bytes:
        barrier.wait(PATIENCE_S)
        return openapi.document_at("https://tickwire.example").body

    with ThreadPoolExecutor(crowd) as threads:
        bodies = list(threads.map(ask, range(crowd)))
    assert len(set(bodies)) == 1
    assert msgspec.json.decode(bodies[0])["paths"] == DOCUMENT["paths"]
