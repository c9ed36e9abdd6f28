"""What is compared must be the same: peers answer what ours answers, but for how times are written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
from django.db import connection
from django.test import RequestFactory
from django.urls import resolve
from pytest_django.fixtures import Settings

from tests.client import Api, Server

from . import short_path
from .agreement import meaning
from .cases import CASES
from .dataset import prepare
from .names import DRF
from .peers import fastapi_app

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="the peers read SQLite")
ROWS = 60


@pytest.fixture
def key(transactional_db: None) -> str:
    return prepare(ROWS, time.time_ns() // 1_000_000)


@pytest.fixture
def ours(key: str) -> Iterator[dict[str, Any]]:
    with Server() as server, Api(server, key) as api:
        yield {case.name: meaning(api.ask(case.path).json()) for case in CASES}


@pytest.fixture
def fastapi(key: str) -> Iterator[httpx.AsyncClient]:
    app = fastapi_app.open_app(str(connection.settings_dict["NAME"]), key)
    yield httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://peer", headers={"X-API-Key": key}
    )
    fastapi_app.close_app()


def test_cases_ask_for_as_much_as_they_name(ours: dict[str, Any]) -> None:
    assert len(ours["100 bars"]["ohlcv"]) == 100
    assert len(ours["500 bars"]["ohlcv"]) == 500
    assert len(ours["news"]["items"]) == 50


@pytest.mark.parametrize(("options", "is_short"), [({}, True), ({"http": "httptools"}, False)])
def test_the_ordinary_path_is_told_from_the_short_one(
    key: str, settings: Settings, options: dict[str, str], is_short: bool
) -> None:
    settings.ACCESS_LOG = False
    with Server(**options) as server:
        assert short_path.is_on(server.port, CASES[0].path, key) is is_short


async def test_fastapi_answers_what_ours_answers(ours: dict[str, Any], fastapi: httpx.AsyncClient) -> None:
    async with fastapi:
        answers = {case.name: meaning((await fastapi.get(case.path)).json()) for case in CASES}

    assert answers == ours


async def test_fastapi_checks_the_key_and_tells_the_window(fastapi: httpx.AsyncClient) -> None:
    async with fastapi:
        good = await fastapi.get(CASES[0].path)
        bad = await fastapi.get(CASES[0].path, headers={"X-API-Key": "nobody"})

    assert good.headers["X-RateLimit-Limit"] == "1000000000"
    assert bad.status_code == 401


def test_drf_answers_what_ours_answers(ours: dict[str, Any], key: str) -> None:
    of_drf = [case for case in CASES if DRF in case.servers]
    answers = {case.name: meaning(msgspec.json.decode(ask_drf(case.path, key).content)) for case in of_drf}

    assert answers == {case.name: ours[case.name] for case in of_drf}


def test_drf_checks_the_key_and_tells_the_window(key: str, settings: Settings) -> None:
    settings.REST_FRAMEWORK = {}

    assert ask_drf(CASES[0].path, key)["X-RateLimit-Limit"] == "1000000000"
    assert ask_drf(CASES[0].path, "nobody").status_code == 403


def ask_drf(path: str, key: str) -> Any:
    match = resolve(path.partition("?")[0], urlconf="tests.nightly.benchmarks.rest.peers.drf_urls")
    request = RequestFactory().get(path, headers={"X-API-Key": key})
    return match.func(request, *match.args, **match.kwargs).render()
