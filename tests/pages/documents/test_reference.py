"""/docs/api: each operation of the OpenAPI document on a page of its own, and once what they share."""

from __future__ import annotations

import ast
import re
from html import unescape
from inspect import signature
from typing import Any

import pytest
from django.test import Client
from tickwire import Client as OfficialClient

from core.contract.errors import CODES
from core.contract.openapi import OTHERWISE
from pages.documents.reference import headers, operations, shared_refusals
from pages.documents.samples import CALLS, requests
from tests.contract.openapi.documented import DOCUMENT, operation, resolved
from tests.factories import make_signal

PATHS = list(DOCUMENT["paths"])
pytestmark = pytest.mark.django_db


def page_of(path: str) -> str:
    return unescape(Client().get(f"/docs/api/{operation(path)['operationId']}").text.replace("<wbr>", ""))


@pytest.mark.parametrize("path", PATHS)
def test_page_has_summary_parameters_fields_and_refusals_of_its_own(path: str) -> None:
    page, answers = page_of(path), operation(path)["responses"]
    assert f"<code>{path}</code>" in page
    assert f"{operation(path)['summary']}." in page
    parameters = re.findall(r'<div id="parameter-[\w-]+">\s*<dt><code>([\w-]+)</code>', page)
    assert parameters == [each["name"] for each in operation(path).get("parameters", [])]
    schema = resolved(answers["200"]["content"]["application/json"]["schema"])
    kinds = [resolved(each) for each in schema.get("oneOf", [schema])]
    assert {name for kind in kinds for name in kind["properties"]} <= fields_on(page)
    numbered = {status: answer for status, answer in answers.items() if status != "default"}
    own = {status for status, answer in numbered.items() if int(status) >= 400 and "$ref" not in answer}
    assert set(re.findall(r'id="status-(\d+)"', page)) == own


def fields_on(page: str) -> set[str]:
    return set(re.findall(r'<th scope="row"><code>([\w.]+)</code>', page))


def test_fields_of_a_list_and_of_an_object_and_refusals_of_a_parameter_are_told_too() -> None:
    page = page_of("/api/market/{symbol}")
    assert {"ohlcv.open", "quote.bid"} <= fields_on(page)
    assert {"closed_by", "closed_by.manual"} <= fields_on(page_of("/api/publishers/{user}"))
    assert "<summary><code>invalid_timeframe</code> for <code>timeframe</code></summary>" in page


def test_shared_refusals_are_described_once() -> None:
    page = Client().get("/docs/api/errors").text
    assert {each.shared for each in shared_refusals()} == set(DOCUMENT["components"]["responses"]) - {
        OTHERWISE
    }
    assert re.findall(r'id="status-(\d+)"', page) == [each.status for each in shared_refusals()]


CODE_ROW = re.compile(
    r'<tr id="(\w+)"><td><code>\1</code></td>\s*<td>\d+</td>\s*<td>(.+?)</td>\s*<td>(.+?)</td>'
)


def test_every_code_is_explained_once() -> None:
    rows = CODE_ROW.findall(Client().get("/docs/api/errors").text)
    assert sorted(code for code, *_ in rows) == sorted(CODES)
    assert all(meaning.endswith(".") and way_out.endswith(".") for _, meaning, way_out in rows)


def test_samples_name_a_signal_that_is_there() -> None:
    signal = make_signal(status="closed")
    page = page_of("/api/signals/{id}")
    assert page.count(str(signal.pk)) >= 4
    assert signal.user.username in page_of("/api/publishers/{user}")


def test_every_header_is_described_once_and_every_tag_declared() -> None:
    page = Client().get("/docs/api/headers").text
    shown = re.findall(r'<tr id="[\w-]+"><th scope="row"><code>([\w-]+)</code>', page)
    assert shown == list(DOCUMENT["components"]["headers"]) == [each.name for each in headers()]
    own = [each.name for each in operations()["getQuote"].headers]
    assert own == ["X-Quote-Age-Ms", "X-Market-State"]
    declared = {tag["name"] for tag in DOCUMENT["tags"]}
    assert {tag for path in PATHS for tag in operation(path)["tags"]} == declared
    assert set(CALLS) == set(operations())


@pytest.mark.parametrize("name", list(CALLS))
def test_samples_are_filled_in(name: str) -> None:
    shown = operations()[name]
    found = requests(shown, "http://testserver", {"symbol": "XAUUSD"})
    path = re.sub(r"\{\w+\}", lambda match: example(shown, match[0][1:-1]), shown.path)
    assert f'"http://testserver{path}' in found["shell"]
    assert all("TICKWIRE_KEY" in text and "http://testserver" in text for text in found.values())
    page = Client().get(f"/docs/api/{name}").text
    assert set(re.findall(r"https?://[\w.:]+", page)) == {"http://testserver"}
    assert not re.search(r"\{\w+\}", found["python"])


def example(shown: Any, name: str) -> str:
    return "XAUUSD" if name == "symbol" else {each.name: each.example for each in shown.parameters}[name]


@pytest.mark.parametrize("name", list(CALLS))
def test_python_sample_calls_the_client_as_it_is(name: str) -> None:
    tree = ast.parse(requests(operations()[name], "http://testserver", {"symbol": "XAUUSD"})["python"])
    (call,) = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) == "tickwire"
    ]
    assert isinstance(call.func, ast.Attribute)
    method = getattr(OfficialClient, call.func.attr)
    given = [ast.literal_eval(each) for each in call.args]
    named = {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg}
    signature(method).bind(None, *given, **named)
