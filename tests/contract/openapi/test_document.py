"""The OpenAPI document against the specification: paths, parameters, fields and statuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.validation import validate_schema

from accounts.models import TIER_LIMITS, Tier
from analysis.built_in import IDENTIFIER as ANALYST
from core.contract.errors import CODES, ApiError
from news.sentiment.linear import FILE as LINEAR_MODEL

from .documented import DOCUMENT, SCHEMAS, is_valid, operation, response
from .specified import (
    CATEGORIES,
    FIELDS,
    NEWS,
    OPTIONAL,
    PARAMETERS,
    QUOTES,
    SESSION,
    SIGNALS,
    STATUSES,
    SYMBOLS,
    TIMEFRAMES,
)


def routes(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    for pattern in patterns:
        route = prefix + str(pattern.pattern).removeprefix("^").removesuffix("/?$")
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, route)
        else:
            yield "/" + re.sub(r"\(\?P<(\w+)>(?:\[\^/\]\+|\.\+\?)\)", r"{\1}", route)


def test_document_is_valid_openapi_3_1() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    validate_schema(DOCUMENT)  # type: ignore[no-untyped-call]


def test_document_is_made_without_a_warning(tmp_path: Path) -> None:
    call_command("spectacular", validate=True, fail_on_warn=True, file=str(tmp_path / "openapi.yaml"))


def test_document_has_exactly_the_paths_that_are_served() -> None:
    served = {route for route in routes(get_resolver().url_patterns) if route.startswith("/api/")}
    assert set(DOCUMENT["paths"]) == served


def test_document_has_every_path_of_the_specification() -> None:
    assert set(DOCUMENT["paths"]) >= set(PARAMETERS)


@pytest.mark.parametrize("path", PARAMETERS)
def test_path_answers_get_with_a_key(path: str) -> None:
    assert list(DOCUMENT["paths"][path]) == ["get"]
    assert operation(path)["security"] == [{"ApiKey": []}]


def test_key_is_a_header() -> None:
    scheme = DOCUMENT["components"]["securitySchemes"]["ApiKey"]
    assert (scheme["type"], scheme["in"], scheme["name"]) == ("apiKey", "header", "X-API-Key")


@pytest.mark.parametrize("path", PARAMETERS)
def test_parameters_are_those_of_the_specification(path: str) -> None:
    parameters = operation(path).get("parameters", [])
    assert {each["name"]: (each["in"], each["schema"]) for each in parameters} == PARAMETERS[path]
    assert all(each["description"] for each in parameters)


@pytest.mark.parametrize("path", PARAMETERS)
def test_only_what_is_in_the_path_is_required(path: str) -> None:
    for parameter in operation(path).get("parameters", []):
        assert parameter.get("required", False) is (parameter["in"] == "path")


@pytest.mark.parametrize("path", [SYMBOLS, NEWS, QUOTES])
def test_lists_are_separated_by_commas(path: str) -> None:
    lists = [each for each in operation(path)["parameters"] if each["schema"].get("type") == "array"]
    assert {(each["style"], each["explode"]) for each in lists} == {("form", False)}


@pytest.mark.parametrize("path", PARAMETERS)
def test_statuses_are_those_of_the_specification(path: str) -> None:
    # 400 is the word on a wrong Host, and 403 production's on keys that came without TLS.
    assert set(operation(path)["responses"]) == STATUSES[path] | {"400", "403"}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_are_those_of_the_specification(name: str) -> None:
    schema = SCHEMAS[name]
    required = {field: SCHEMAS[name]["properties"][field].get("type") for field in schema["required"]}
    assert required == FIELDS[name]
    assert set(schema["properties"]) - set(required) == OPTIONAL.get(name, set())
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_field_has_a_description(name: str) -> None:
    fields = SCHEMAS[name].get("properties", {})
    assert [field for field, schema in fields.items() if not schema.get("description")] == []


def test_words_of_a_field_are_those_of_the_contract() -> None:
    def words(schema: str, field: str) -> list[str]:
        return list(SCHEMAS[schema]["properties"][field]["enum"])

    assert words("Instrument", "type") == ["forex", "commodity", "crypto", "index", "stock"]
    assert words("Market", "timeframe") == TIMEFRAMES
    assert words("ActiveSignal", "direction") == ["buy", "sell"]
    assert words("NewsItem", "category") == CATEGORIES
    assert words("NewsItem", "sentiment") == ["bullish", "neutral", "bearish"]


def test_list_of_quotes_tells_its_limit_and_what_counts() -> None:
    examples = operation(QUOTES)["responses"]["400"]["content"]["application/json"]["examples"]
    refused = {example["value"]["error"]["code"]: example["value"]["error"] for example in examples.values()}

    assert set(refused) == {"invalid_parameter", "parameter_out_of_range"}
    assert (refused["parameter_out_of_range"]["field"], refused["parameter_out_of_range"]["max"]) == (
        "symbols",
        200,
    )


def test_active_signal_has_no_result_and_a_closed_one_all_of_it() -> None:
    bodies = operation(SIGNALS)["responses"]["200"]["content"]["application/json"]["examples"]
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
        "serving.websocket.absent",
        "market.push.",
        "accounts.keys.browser_tokens",
        "accounts.login.visitors",
        "pages.handler",
    )
    raised = {kind.code for kind in refusals() if not kind.__module__.startswith(apart)}
    unlisted = sorted(raised - set(CODES))
    assert not unlisted, f"raised, but not in CODES of core/contract/errors.py: {', '.join(unlisted)}"
    untold = [code for code in CODES if f"`{code}`" not in DOCUMENT["info"]["description"]]
    assert not untold, f"in CODES, but not under Errors in templates/docs/about.md: {', '.join(untold)}"


def test_example_of_the_session_names_models_that_there_are() -> None:
    (example,) = operation(SESSION)["responses"]["200"]["content"]["application/json"]["examples"].values()
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


def test_the_only_server_is_the_one_that_the_document_comes_from() -> None:
    """A tool that reads it must not send a key anywhere else."""
    assert [server["url"] for server in DOCUMENT["servers"]] == ["/"]


def test_each_reason_for_waiting_has_an_example() -> None:
    examples = response("/api/symbols", 429)["content"]["application/json"]["examples"]
    assert {name: each["summary"] for name, each in examples.items()} == {
        "rate_limit_exceeded": "Your account has used up its requests",
        "rate_limit_exceeded.without_key": "Too many requests without a valid key",
    }
    ai_calls = response("/api/analysis/{symbol}", 429)["content"]["application/json"]["examples"]
    assert set(ai_calls) == {"ai_quota_exceeded", *examples}
