"""What each parameter of each path is refused for, against what the document says of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import override_settings

from archive.index import archive_index
from market.api.quotes import MOST
from tests.client import Api, Server
from tests.contract.archive.stored import store_day
from tests.contract.published import make_shown
from tests.factories import make_account, make_instrument, make_key, make_tier, put_candles, put_quote

from .documented import DOCUMENT, operation, resolved

pytestmark = pytest.mark.served

HOUR_MS = 3_600_000
NAMES = {"symbol": "EURUSD", "id": "0b7d1a9c-3a5e-4c86-8a43-5f0f5f3f1d77", "user": "marta", "path": "x"}
# Of every kind of parameter whatever it may be refused for, and of each some that it takes.
VALUES = [
    *("", "a", "-1", "0", "1", "1.5", "501", "10001", "9999999999", "9" * 30, "true"),
    *("yesterday", "2026-02-30", "1969-12-31T23:59:59Z", "1795167164", "9999999999999999"),
    *("EURUSD", "EURUSD,,XAUUSD", "EURUSD;XAUUSD", ",".join(f"A{each}" for each in range(MOST + 1))),
]
Refused = tuple[int, str, str]
"""Status, code and field."""


def names(path: str) -> list[str]:
    parameters = operation(path).get("parameters", [])
    return [each["name"] for each in parameters if each["in"] == "query"]


WITH_PARAMETERS = [path for path in DOCUMENT["paths"] if names(path)]


@pytest.fixture(scope="module")
def client(shared_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """With a key that reads everything, and is never used up."""
    make_shown(make_instrument("EURUSD"))
    put_quote("EURUSD")
    put_candles("EURUSD", "1h", [HOUR_MS * number for number in range(3)])
    folder = tmp_path_factory.mktemp("archive")
    # Of another instrument, because its files are no Parquet, which ticks would be read from.
    store_day(folder, "2026-11-20", ["XAUUSD"])
    key = make_key(make_account(tier=make_tier("curious", requests_per_minute=100_000, archive=True)))
    with override_settings(ARCHIVE_DIR=folder, ARCHIVE_S3_URL=None), Api(shared_server, key) as client:
        archive_index.forget()
        yield client
        archive_index.forget()


def refused(client: Api, path: str, query: str) -> Iterator[Refused]:
    answer = client.ask(f"{path.format(**NAMES)}?{query}")
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        error = answer.json()["error"]
        yield answer.status_code, error["code"], error.get("field", "")


def provoked(client: Api, path: str) -> set[Refused]:
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    queries = [
        *(f"{name}={value}" for name in names(path) for value in VALUES),
        *(f"{name}=A&{name}=B" for name in names(path)),
        *([f"start={now_ms}&end=0"] if "start" in names(path) else []),
    ]
    return {each for query in queries for each in refused(client, path, query)}


def documented(path: str) -> set[Refused]:
    """Of its parameters."""
    found = set()
    for status, answer in operation(path)["responses"].items():
        if status.isdigit() and int(status) >= 400:
            for example in resolved(answer)["content"]["application/json"]["examples"].values():
                error = example["value"]["error"]
                found.add((int(status), error["code"], error.get("field", "")))
    return {each for each in found if each[2] in names(path) and each[0] != 403}


@pytest.mark.parametrize("path", WITH_PARAMETERS)
def test_document_has_every_refusal_of_every_parameter(client: Api, path: str) -> None:
    assert provoked(client, path) == documented(path)


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_request_for_another_host_is_as_described_on_every_path(client: Api, path: str) -> None:
    answer = client.ask(path.format(**NAMES), headers={"Host": "another.example"})
    described = resolved(operation(path)["responses"]["400"])
    told: list[Any] = [
        each["value"]["error"] for each in described["content"]["application/json"]["examples"].values()
    ]
    without_id = {name: value for name, value in answer.json()["error"].items() if name != "request_id"}
    assert answer.status_code == 400
    assert without_id in [{name: each[name] for name in each if name != "request_id"} for each in told]
    always = [name for name, header in described["headers"].items() if resolved(header)["required"]]
    assert [name for name in always if name not in answer.headers] == []
