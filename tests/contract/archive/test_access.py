from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import time_machine
from django.db import transaction

from accounts.limits.tiers import save_tier
from accounts.models import Tier
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from instruments.models import WithheldSource
from tests.accounts.browser import logged_in, token_of
from tests.client import Api
from tests.contract.answers import refusal
from tests.factories import NOON, make_account, make_instrument, make_key, make_tier, make_user
from tests.patience import wait_until

from .stored import store_day

DAY = "2026-11-17"
TICKS = f"/api/archive/ticks/EURUSD/{DAY}.parquet"
PATHS = ("/api/archive", TICKS, f"/api/archive/manifests/{DAY}.json", "/api/archive/nothing")


@pytest.fixture(scope="module", autouse=True)
def noon(root: Path) -> Iterator[None]:
    store_day(root, DAY)
    with time_machine.travel(NOON):
        yield


@pytest.fixture
def without(entitled: Api) -> str:
    return make_key(make_account(tier=make_tier("bare", archive=False)))


@pytest.mark.parametrize("path", PATHS)
def test_tier_without_the_archive_is_told_which_ones_have_it(entitled: Api, without: str, path: str) -> None:
    Tier.objects.filter(name="premium").delete()
    make_tier("premium", archive=True, rank=3)
    Tier.objects.filter(name="archivist").update(rank=4)
    said = refusal(entitled.ask(path, key=without), 403, "not_allowed")
    assert said.startswith("The Bare tier has no archive; Premium and Archivist have it.")


@pytest.mark.parametrize("path", PATHS)
def test_refusal_costs_one_request(entitled: Api, path: str) -> None:
    key = make_key(make_account(tier=make_tier("two", requests_per_minute=2, archive=False)))
    answers = [entitled.ask(path, key=key, method=method) for method in ("GET", "HEAD", "GET")]
    assert [answer.status_code for answer in answers] == [403, 403, 429]
    assert answers[0].headers["X-RateLimit-Remaining"] == "1"


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
    make_instrument("EURUSD")
    store_day(root, "2026-11-16", ["XAUUSD"], sources=["oanda"])

    def listed() -> list[str]:
        return [item["path"] for item in entitled.ask("/api/archive").json()["items"]]

    gold = "ticks/XAUUSD/2026-11-16.parquet"
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
