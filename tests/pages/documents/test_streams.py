"""/asyncapi.json, and the same for people: one page per stream, and what they share once."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from jsonschema import Draft7Validator  # type: ignore[import-untyped]

from market.streams.protocol.messages import ACTIONS, CLOSES, FEATURES, REFUSALS
from pages.documents.stream_reference import content, shared_words

HOST = "stream.localhost"
REFUSAL_ROW = r'<th scope="row">(?:<code>)?([\w–]+)(?:</code>)?</th>\s*<td>([\d–]+)</td>\s*<td>(.*?)</td>'


@pytest.fixture(autouse=True)
def _host(settings: Any) -> None:
    settings.ALLOWED_HOSTS = [HOST]


def get(path: str, **options: Any) -> HttpResponse:
    answer: Any = Client(HTTP_HOST=HOST).get(path, **options)
    return answer  # type: ignore[no-any-return]


@pytest.fixture
def document() -> Any:
    return Client(HTTP_HOST=HOST).get("/asyncapi.json").json()


NAMES = ("market", "orderflow", "candles", "signals", "news")
PAGES = ("/docs/streams", *(f"/docs/streams/{name}" for name in ("messages", "errors", *NAMES)))
PATHS = {name: f"/ws/{name}" for name in NAMES} | {"all": "/ws"}


def read(path: str) -> str:
    answer = get(path)
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/html; charset=utf-8")
    return unescape(answer.content.decode())


@pytest.fixture
def page(db: None) -> str:
    """All of them."""
    return "".join(map(read, PAGES))


def test_document_is_for_everybody_and_an_unchanged_one_is_not_sent_again() -> None:
    answer = get("/asyncapi.json")
    assert answer["Content-Type"] == "application/json"
    assert answer["Cache-Control"] == "private, max-age=300"
    assert answer["Access-Control-Allow-Origin"] == "*"

    again = get("/asyncapi.json", headers={"If-None-Match": answer["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert get("/asyncapi.json", headers={"If-None-Match": '"another"'}).status_code == 200
    for path in ("/asyncapi.json", "/docs/streams"):
        assert Client(HTTP_HOST=HOST).post(path).status_code == 405


@pytest.mark.parametrize(("is_secure", "protocol"), [(False, "ws"), (True, "wss")])
def test_document_names_the_host_that_was_asked(is_secure: bool, protocol: str) -> None:
    answer: Any = get("/asyncapi.json", secure=is_secure)

    assert answer.json()["servers"] == {"tickwire": {"host": HOST, "protocol": protocol}}


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/asyncapi.json", "/docs/streams"])
def test_made_up_addresses_make_it_once(path: str) -> None:
    pages = [Client(HTTP_HOST=f"{HOST}:{port}").get(path).content.decode() for port in range(8000, 8020)]

    assert all(f"{HOST}:{port}" in page for port, page in enumerate(pages, 8000))
    assert (content.cache_info().currsize, shared_words.cache_info().currsize <= 1) == (1, True)


def test_examples_of_the_served_document_are_valid(document: Any) -> None:
    parts = document["components"]
    for name, message in parts["messages"].items():
        assert message["examples"]
        schema = {"$ref": f"#/components/schemas/{name}", "components": parts}
        for example in message["examples"]:
            Draft7Validator(schema).validate(example["payload"])


def test_page_has_every_message_with_its_fields(page: str, document: Any) -> None:
    told = r'<section class="message">\s*<h\d id="(\w+)">(.*?)</section>'
    articles = dict(re.findall(told, page, re.DOTALL))
    messages, schemas = document["components"]["messages"], document["components"]["schemas"]

    assert set(articles) == {name.lower() for name in messages}
    for name in messages:
        shown = re.findall(r'<th scope="row"><code>(\w+)</code>', articles[name.lower()])
        assert sorted(shown) == sorted(schemas[name]["properties"])
        assert articles[name.lower()].count("<pre ") == len(messages[name]["examples"])


@pytest.mark.django_db
@pytest.mark.parametrize("name", PATHS)
def test_stream_has_a_page_with_its_own_messages_and_can_be_tried(document: Any, name: str) -> None:
    page = read(f"/docs/streams/{name}")
    data = document["operations"][f"{name}Data"]["messages"]
    shown = re.findall(r'<section class="message">\s*<h2 id="(\w+)">', page)
    assert shown == [each["$ref"].rpartition("/")[2].lower() for each in data]
    assert re.sub("<[^>]+>", "", page).count("TICKWIRE_KEY") == 3
    assert f'value="{PATHS[name]}"' in page


def test_pages_have_every_action_path_and_feature_and_what_is_in_an_object(page: str) -> None:
    names = set(re.findall(r"<code>([^<]+)</code>", page.replace("<wbr>", "")))
    within = {"resume.epoch", "rejected.symbol", "error.code", "error.retry_after"}
    assert names >= {*ACTIONS, *FEATURES, *within, *PATHS.values()}


def test_page_has_every_refusal_and_close_code(page: str) -> None:
    table = re.findall(REFUSAL_ROW, page)

    assert [(code, status) for code, status, _ in table if status != "–"] == [
        (code, str(refusal.status)) for code, refusal in REFUSALS.items()
    ]
    assert sorted(int(close) for *_, close in table if close != "no") == sorted(CLOSES)


def test_page_loads_nothing_from_elsewhere_and_runs_nothing(page: str) -> None:
    sources = re.findall(r'<(?:link|img|iframe|video|source)[^>]*(?:href|src)="([^"]+)"', page)

    assert sources
    assert all(source.startswith("/static/") for source in sources)
    # Data and our own module are all that a script may be.
    inline = r'<script(?! id="[\w-]+" type="application/json"|(?: type="module")? src="/static/)'
    assert not re.search(inline + r"|<style|\sstyle=|\son\w+=\"", page)
