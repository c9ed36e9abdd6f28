from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st

from archive.api.index import archive_index
from tests.client import Api
from tests.contract.answers import refusal
from tests.factories import NOON, make_instrument

from .stored import store_day, write

DAYS = ("2026-11-13", "2026-11-16", "2026-11-17")
SYMBOLS = ("EURUSD", "XAUUSD")
Item = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def noon() -> Iterator[None]:
    with time_machine.travel(NOON, tick=False):
        yield


@pytest.fixture(scope="module")
def items(root: Path, entitled: Api) -> list[Item]:
    make_instrument("EURUSD")
    made = [item for day in DAYS for item in store_day(root, day, SYMBOLS)]
    archive_index.forget()
    return made


def listed(api: Api, query: str = "") -> Any:
    response = api.ask(f"/api/archive?{query}")
    assert response.status_code == 200, response.text
    return response.json()


def test_files_come_by_day_then_path_with_exactly_these_fields(entitled: Api, items: list[Item]) -> None:
    assert listed(entitled) == {"items": items, "count": len(items), "next": None}
    assert len(items) == 15


@pytest.mark.parametrize(
    ("query", "keeps"),
    [
        ("kind=ticks", lambda item: item["kind"] == "ticks"),
        ("kind=candles", lambda item: item["kind"] == "candles"),
        ("kind=manifest", lambda item: item["kind"] == "manifest"),
        ("symbol=XAUUSD", lambda item: item["symbol"] == "XAUUSD"),
        ("symbol=xauusd&kind=ticks", lambda item: (item["symbol"], item["kind"]) == ("XAUUSD", "ticks")),
        ("symbol=XAUUSD&kind=manifest", lambda item: False),
        ("start=2026-11-16", lambda item: item["day"] >= "2026-11-16"),
        ("end=2026-11-16", lambda item: item["day"] < "2026-11-16"),
        ("start=2026-11-16&end=2026-11-17", lambda item: item["day"] == "2026-11-16"),
        ("start=2026-11-16T23:59:59Z", lambda item: item["day"] >= "2026-11-16"),
        ("end=2026-11-16T00:00:00.001Z", lambda item: item["day"] <= "2026-11-16"),
        ("end=2026-11-16T00:00:00Z", lambda item: item["day"] < "2026-11-16"),
        ("start=1795132800000", lambda item: item["day"] >= "2026-11-20"),
        ("end=9999-12-31", lambda item: True),
        ("start=2026-11-17&end=2026-11-16", lambda item: False),
        ("unknown=1", lambda item: True),
    ],
)
def test_filters(entitled: Api, items: list[Item], query: str, keeps: Any) -> None:
    assert listed(entitled, query)["items"] == [item for item in items if keeps(item)]


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=6), st.sampled_from(["", "kind=ticks", "symbol=EURUSD"])
)
def test_walk_of_any_limits_loses_and_repeats_nothing(
    entitled: Api, items: list[Item], limits: list[int], query: str
) -> None:
    whole = listed(entitled, query)["items"]
    walked: list[Item] = []
    cursor, turn = "", 0
    while cursor is not None:
        limit = limits[turn % len(limits)]
        page = listed(entitled, f"{query}&limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
        assert page["count"] == len(page["items"]) <= limit
        walked, cursor, turn = walked + page["items"], page["next"], turn + 1
    assert walked == whole


def test_cursor_of_other_parameters_is_refused(entitled: Api, items: list[Item]) -> None:
    cursor = listed(entitled, "limit=2")["next"]
    for query in (f"kind=ticks&cursor={cursor}", f"cursor={cursor[:-2]}xx", "cursor="):
        refusal(entitled.ask(f"/api/archive?{query}"), 400, "invalid_cursor", field="cursor")


def test_limit_may_change_on_the_way(entitled: Api, items: list[Item]) -> None:
    cursor = listed(entitled, "limit=2")["next"]
    assert listed(entitled, f"limit=500&cursor={cursor}")["items"] == items[2:]


@pytest.mark.parametrize(
    ("query", "code", "details"),
    [
        ("kind=quotes", "invalid_parameter", {"field": "kind", "allowed": ["candles", "manifest", "ticks"]}),
        ("start=yesterday", "invalid_parameter", {"field": "start"}),
        ("start=2026-11-20T10:00", "invalid_parameter", {"field": "start"}),
        ("end=2026-02-30", "invalid_parameter", {"field": "end"}),
        ("end=", "invalid_parameter", {"field": "end"}),
        ("limit=501", "parameter_out_of_range", {"field": "limit", "max": 500}),
        ("limit=0", "parameter_out_of_range", {"field": "limit", "max": 500}),
        ("limit=1&limit=2", "invalid_parameter", {"field": "limit"}),
    ],
)
def test_bad_parameters(entitled: Api, query: str, code: str, details: Item) -> None:
    refusal(entitled.ask(f"/api/archive?{query}"), 400, code, **details)


@pytest.mark.parametrize("query", ["start=yesterday", "end=2026-02-30", "end=2026-11-20T10:00"])
def test_a_day_is_named_among_what_is_taken(entitled: Api, query: str) -> None:
    name = query.partition("=")[0]
    said = refusal(entitled.ask(f"/api/archive?{query}"), 400, "invalid_parameter", field=name)
    assert said.startswith(
        f"{name} must be a day such as 2026-11-20, an ISO 8601 time with its zone, such as "
    )


def test_unknown_symbol_comes_before_bad_parameters(entitled: Api, items: list[Item]) -> None:
    said = refusal(
        entitled.ask("/api/archive?symbol=EURUSE&limit=0"), 404, "symbol_not_found", field="symbol"
    )
    assert "EURUSD" in said


def test_symbol_that_is_no_instrument_any_more_stays_listed(entitled: Api, items: list[Item]) -> None:
    assert listed(entitled, "symbol=XAUUSD")["count"] == 6


def test_open_day_is_not_listed_even_if_it_has_a_manifest(
    entitled: Api, root: Path, items: list[Item]
) -> None:
    made = store_day(root, "2026-11-18")
    archive_index.forget()
    assert listed(entitled)["items"] == items
    with time_machine.travel("2026-11-19T00:00:01Z", tick=False):
        archive_index.forget()
        assert listed(entitled)["items"] == items + made
    (root / "manifests/2026-11-18.json").unlink()
    archive_index.forget()


def test_file_that_no_manifest_names_is_not_listed(entitled: Api, root: Path, items: list[Item]) -> None:
    write(root / "ticks/EURUSD/2026-11-12.parquet", b"half a file")
    archive_index.forget()
    assert listed(entitled)["items"] == items


def test_manifest_that_cannot_be_read_costs_its_day_alone(
    entitled: Api, root: Path, items: list[Item], caplog: pytest.LogCaptureFixture
) -> None:
    path = root / "manifests/2026-11-16.json"
    good = path.read_bytes()
    path.write_bytes(good[:100])
    archive_index.forget()
    assert listed(entitled)["items"] == [item for item in items if item["day"] != "2026-11-16"]
    assert "manifests/2026-11-16.json" in caplog.text
    path.write_bytes(good)
    archive_index.forget()
    assert listed(entitled)["items"] == items


@pytest.mark.parametrize("named", ["ticks/../../secret", "ticks/XAUUSD/2026-11-16.parquet", "/etc/passwd"])
def test_manifest_names_nothing_but_its_own_day(
    entitled: Api, root: Path, items: list[Item], named: str
) -> None:
    store_day(root, "2026-11-12")
    path = root / "manifests/2026-11-12.json"
    manifest = json.loads(path.read_bytes())
    manifest["files"][0]["path"] = named
    path.write_text(json.dumps(manifest))
    archive_index.forget()
    assert listed(entitled, "end=2026-11-13")["items"] == []
    path.unlink()
    archive_index.forget()


def test_list_is_packed_where_the_client_takes_it(entitled: Api, items: list[Item]) -> None:
    plain = entitled.ask("/api/archive", headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in plain.headers
    assert plain.headers["Vary"] == "Accept-Encoding"
    with entitled.stream(
        "GET", "/api/archive", headers={"X-API-Key": entitled.key, "Accept-Encoding": "gzip"}
    ) as packed:
        raw = b"".join(packed.iter_raw())
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["Vary"] == "Accept-Encoding"
    assert gzip.decompress(raw) == plain.content


def test_empty_archive_has_an_empty_list(entitled: Api, tmp_path: Path, settings: Any) -> None:
    settings.ARCHIVE_DIR = tmp_path / "none"
    archive_index.forget()
    assert listed(entitled) == {"items": [], "count": 0, "next": None}
