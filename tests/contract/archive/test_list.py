"""GET /api/archive: which files there are, and who may have them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from accounts.limits.tiers import save_tier
from accounts.models import Tier
from archive.index import archive_index
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from instruments.models import WithheldSource
from tests.accounts.browser import logged_in, token_of
from tests.client import Api
from tests.contract.answers import refusal
from tests.factories import make_account, make_instrument, make_key, make_tier, make_user
from tests.patience import wait_until

from .stored import store_day, write

DAYS = ("2026-11-13", "2026-11-16", "2026-11-17")
DAY = DAYS[-1]
TICKS = f"/api/archive/ticks/EURUSD/{DAY}.parquet"
PATHS = ("/api/archive", TICKS, f"/api/archive/manifests/{DAY}.json", "/api/archive/nothing")
SYMBOLS = ("EURUSD", "XAUUSD")
Item = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def items(root: Path, entitled: Api) -> list[Item]:
    make_instrument("EURUSD")
    made = [item for day in DAYS for item in store_day(root, day, SYMBOLS)]
    archive_index.forget()
    return made


def listed(api: Api, query: str = "") -> Any:
    response = api.ask(f"/api/archive?{query}")
    assert response.status_code == 200, response.text
    return response.json()


def test_files_come_by_day_then_path_with_exactly_these_fields(
    entitled: Api, items: list[Item], root: Path, tmp_path: Path, settings: Any
) -> None:
    write(root / "ticks/EURUSD/2026-11-12.parquet", b"half a file, which no manifest names")
    assert listed(entitled) == {"items": items, "count": len(items), "next": None}
    assert len(items) == 15
    settings.ARCHIVE_DIR = tmp_path / "none"
    archive_index.forget()
    assert listed(entitled) == {"items": [], "count": 0, "next": None}


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


def test_cursor_goes_on_with_another_limit_and_with_no_other_parameter(
    entitled: Api, items: list[Item]
) -> None:
    cursor = listed(entitled, "limit=2")["next"]
    assert listed(entitled, f"limit=500&cursor={cursor}")["items"] == items[2:]
    for query in (f"kind=ticks&cursor={cursor}", f"cursor={cursor[:-2]}xx", "cursor="):
        refusal(entitled.ask(f"/api/archive?{query}"), 400, "invalid_cursor", field="cursor")


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


# Who may have it.
@pytest.mark.parametrize("path", PATHS)
def test_tier_without_the_archive_is_told_which_ones_have_it_and_pays_a_request(
    entitled: Api, path: str
) -> None:
    Tier.objects.filter(name="premium").delete()
    make_tier("premium", archive=True, rank=3)
    Tier.objects.filter(name="archivist").update(rank=4)
    key = make_key(make_account(tier=make_tier("bare", requests_per_minute=2, archive=False)))
    answers = [entitled.ask(path, key=key, method=method) for method in ("GET", "HEAD", "GET")]
    said = refusal(answers[0], 403, "not_allowed")
    assert said.startswith("The Bare tier has no archive; Premium and Archivist have it.")
    assert [answer.status_code for answer in answers] == [403, 403, 429]


@pytest.mark.parametrize("path", ["/api/archive", TICKS])
def test_each_answer_costs_one_request(entitled: Api, path: str) -> None:
    key = make_key(make_account(tier=make_tier("three", requests_per_minute=3, archive=True)))
    tag = entitled.ask(TICKS).headers["ETag"]
    asked: list[dict[str, str]] = [{}, {"If-None-Match": tag}, {"Range": "bytes=0-9"}]
    left = [entitled.ask(path, key=key, headers=each).headers["X-RateLimit-Remaining"] for each in asked]
    assert left == ["2", "1", "0"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("key", "code"), [(None, "missing_api_key"), ("tw_live_bad", "invalid_api_key")])
def test_nobody_without_a_key_is_told_anything(entitled: Api, path: str, key: str | None, code: str) -> None:
    refusal(entitled.ask(path, key=key), 401, code)


@pytest.mark.parametrize("path", PATHS)
def test_pages_have_no_archive_whatever_the_tier(entitled: Api, path: str) -> None:
    user = make_user(password="a long walk 7")
    make_account(user, tier="archivist")
    said = refusal(entitled.ask(path, key=token_of(logged_in(user))), 403, "not_allowed")
    assert "API key" in said


def test_tier_is_opened_and_closed(entitled: Api) -> None:
    tier = make_tier("turning", requests_per_minute=100_000, archive=False)
    key = make_key(make_account(tier=tier))

    def status() -> int:
        return entitled.ask(TICKS, key=key).status_code

    assert status() == 403
    tier.archive = True
    save_tier(tier, by="boss")
    wait_until(lambda: status() == 200)
    tier.archive = False
    save_tier(tier, by="boss")
    wait_until(lambda: status() == 403)


def test_data_of_a_withheld_source_is_neither_listed_nor_served(entitled: Api, root: Path) -> None:
    store_day(root, "2026-11-12", ["XAUUSD"], sources=["oanda"])
    archive_index.forget()

    def listed() -> list[str]:
        return [item["path"] for item in entitled.ask("/api/archive").json()["items"]]

    gold = "ticks/XAUUSD/2026-11-12.parquet"
    assert gold in listed()
    with transaction.atomic():
        source = WithheldSource.objects.create(name="oanda")
        ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, by="boss")
    wait_until(lambda: gold not in listed())
    said = refusal(entitled.ask(f"/api/archive/{gold}"), 404, "not_found")
    assert said.startswith("XAUUSD is not offered")
    assert f"ticks/EURUSD/{DAY}.parquet" in listed()
    assert entitled.ask(TICKS).status_code == 200
    with transaction.atomic():
        source.delete()
        ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, by="boss")
    wait_until(lambda: gold in listed())
