from __future__ import annotations

from datetime import UTC, datetime

import pytest
from time_machine import Traveller

from accounts.limits.tiers import change_tier
from accounts.models import AiUsage, Tier
from accounts.open_streams.registry import open_streams
from tests.accounts.open_streams.claims import claimed, release
from tests.client import Api, Server
from tests.contract.answers import refusal
from tests.factories import NOON, make_account, make_instrument, make_key, make_tier, make_tiers, put_quote
from tests.patience import wait_until

pytestmark = [pytest.mark.services, pytest.mark.pooled]

NOON_S = int(NOON.timestamp())


@pytest.fixture(scope="module", autouse=True)
def rows(shared: Api) -> None:
    make_instrument("EURUSD")
    make_instrument("SILENT")
    put_quote("EURUSD")
    make_tiers()
    make_tier("tiny", requests_per_minute=2)


def remaining(api: Api, key: str) -> int:
    left: int = api.ask("/api/limits", key=key).json()["requests"]["remaining"]
    return left


@pytest.mark.parametrize(("tier", "limit"), [("free", 60), ("pro", 120), ("premium", 300)])
def test_a_tier_admits_exactly_its_limit(shared: Api, tier: str, limit: int) -> None:
    key = make_key(make_account(tier=tier))
    answers = [shared.ask("/api/market/EURUSD/quote", key=key) for _ in range(limit + 3)]
    assert [answer.status_code for answer in answers] == [200] * limit + [429] * 3
    left = [answer.headers["X-RateLimit-Remaining"] for answer in answers]
    assert left == [str(number) for number in range(limit - 1, -1, -1)] + ["0"] * 3
    assert {answer.headers["X-RateLimit-Limit"] for answer in answers} == {str(limit)}


def test_over_the_limit_is_refused_with_the_time_to_wait_and_limits_still_answer(shared: Api) -> None:
    key = make_key(make_account(tier="tiny"))
    *_, refused = (shared.ask("/api/symbols", key=key) for _ in range(3))
    assert "2 requests a minute" in refusal(refused, 429, "rate_limit_exceeded")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert refused.headers["X-RateLimit-Remaining"] == "0"
    assert refused.headers["RateLimit"] == f'"tiny";r=0;t={refused.headers["Retry-After"]}'
    assert remaining(shared, key) == 0
    assert shared.ask("/api/symbols", key=key).status_code == 429


def test_refusals_cost_nothing_and_a_changed_tier_holds_in_the_same_window(shared: Api) -> None:
    account = make_account(tier="tiny")
    key, ended = make_key(account), make_key(account, revoked_at=NOON)
    statuses = [shared.ask("/api/symbols", key=each).status_code for each in (ended, *[key] * 9)]
    assert statuses == [401] + [200] * 2 + [429] * 7
    change_tier(account, Tier.objects.get(name="premium"), by="test")
    wait_until(lambda: shared.ask("/api/limits", key=key).json()["tier"] == "premium")
    assert remaining(shared, key) == 300 - 2


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/symbols", 200),
        ("HEAD", "/api/symbols", 200),
        ("GET", "/api/nothing", 404),
        ("GET", "/api/market/NOSUCH/quote", 404),
        ("GET", "/api/market/SILENT/quote", 503),
        ("GET", "/api/signals/none", 404),
        ("GET", "/api/news/calibration", 200),
        ("GET", "/api/quotes", 200),
        ("GET", "/api/quotes?symbols=EURUSD,SILENT", 200),
        ("GET", "/api/quotes?symbols=", 400),
        ("GET", "/api/news?limit=0", 400),
        ("POST", "/api/symbols", 405),
        ("OPTIONS", "/api/symbols", 204),
        ("GET", "/api/limits", 200),
        ("HEAD", "/api/limits", 200),
    ],
)
def test_what_a_request_costs(shared: Api, method: str, path: str, status: int) -> None:
    key = make_key(make_account(tier="roomy"))
    assert shared.ask(path, key=key, method=method).status_code == status
    assert remaining(shared, key) == 100_000 - (0 if method == "OPTIONS" or path == "/api/limits" else 1)


def test_window_is_shared_by_the_keys_of_an_account_and_by_nobody_else(shared: Api) -> None:
    account = make_account(tier="tiny")
    first, second, other = make_key(account), make_key(account), make_key(make_account(tier="tiny"))
    keys = (first, second, first, second, other)
    statuses = [shared.ask("/api/symbols", key=key).status_code for key in keys]
    assert statuses == [200, 200, 429, 429, 200]


def test_limits_body_says_the_same_as_the_headers(clock: Traveller, shared: Api) -> None:
    key = make_key(make_account(tier="pro"))
    shared.ask("/api/symbols", key=key)
    answer = shared.ask("/api/limits", key=key)
    body = answer.json()
    reset = body["requests"].pop("reset")
    assert body == {
        "tier": "pro",
        "requests": {"limit": 120, "remaining": 119},
        "ai_calls": {"limit": 20, "remaining": 20, "reset": NOON_S + 12 * 3600},
        "streams": {"limit": 5, "open": []},
    }
    # The window is of time that passes, which stands still for nobody.
    assert NOON_S < reset <= NOON_S + 60
    assert [answer.headers[f"X-RateLimit-{name}"] for name in ("Limit", "Remaining")] == ["120", "119"]


def test_limits_count_the_ai_calls_of_the_utc_day(clock: Traveller, shared: Api) -> None:
    account = make_account(tier="free")
    key = make_key(account)
    AiUsage.objects.create(account=account, day=NOON.date(), used=3)
    today = shared.ask("/api/limits", key=key).json()["ai_calls"]
    clock.move_to(datetime(2026, 11, 19, tzinfo=UTC))
    tomorrow = shared.ask("/api/limits", key=key).json()["ai_calls"]
    assert (today["remaining"], tomorrow["remaining"]) == (2, 5)
    assert tomorrow["reset"] - today["reset"] == 86_400


def test_limits_list_the_open_streams_of_the_account_only(
    clock: Traveller, shared_server: Server, shared: Api
) -> None:
    account = make_account(tier="pro")
    mine = shared_server.run(claimed(open_streams, account.pk, "/ws/market"))
    other = shared_server.run(claimed(open_streams, account.pk + 1, "/ws/signals"))
    clock.shift(7.5)
    streams = shared.ask("/api/limits", key=make_key(account)).json()["streams"]
    shared_server.run(release([mine, other]))
    assert streams == {"limit": 5, "open": [{"path": "/ws/market", "age_seconds": 7}]}
