"""GET /api/signals/ledger: from its JSON alone anyone can tell that nothing was altered or left out."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest

from signals_feed.ledger.ledger import LedgerHead
from tests.client import Api
from tests.contract.answers import refusal
from tests.contract.published import end, make_published, quoted
from tests.databases.queries import count_queries
from tests.factories import NOON, make_instrument

FIRST_PREVIOUS_HASH = "0" * 64
SIGNALS = 4


@pytest.fixture(scope="module", autouse=True)
def feed(shared: Api) -> None:
    eurusd = make_instrument("EURUSD")
    for number in range(SIGNALS):
        signal = make_published(eurusd, quoted("1.08400", "1.08424", NOON + timedelta(minutes=number)))
        end(signal, quoted("1.08413", "1.08440", NOON + timedelta(hours=1)))


def page(shared: Api, query: str = "") -> dict[str, Any]:
    body: dict[str, Any] = shared.ask(f"/api/signals/ledger?{query}").json()
    return body


def test_chain_can_be_verified_from_the_answers_alone(shared: Api) -> None:
    previous, position = FIRST_PREVIOUS_HASH, 0
    while entries := page(shared, f"after={position}&limit=3")["items"]:
        for entry in entries:
            assert entry["previous"] == previous
            assert entry["position"] == position + 1
            assert entry["hash"] == hashlib.sha256((previous + entry["payload"]).encode()).hexdigest()
            previous, position = entry["hash"], entry["position"]

    assert page(shared)["head"] == {"position": position, "hash": previous}
    assert position == 2 * SIGNALS


def test_altered_payload_would_break_the_chain(shared: Api) -> None:
    entry = page(shared)["items"][0]
    altered = entry["payload"].replace('"buy"', '"sell"')

    assert altered != entry["payload"]
    assert hashlib.sha256((entry["previous"] + altered).encode()).hexdigest() != entry["hash"]


def test_payload_tells_the_facts_of_its_entry(shared: Api) -> None:
    entry = page(shared)["items"][0]
    facts = json.loads(entry["payload"])

    assert facts["position"] == entry["position"] == 1
    assert (facts["kind"], facts["signal"]) == (entry["kind"], entry["signal"])
    assert (facts["symbol"], facts["direction"], facts["entry"]) == ("EURUSD", "buy", "1.08424")


def test_publishers_are_told_apart_without_their_names(shared: Api) -> None:
    """By the signal anyone finds whose it is, for as long as they have that name."""
    names: dict[str, str] = {}
    for entry in page(shared)["items"]:
        if entry["kind"] == "publish":
            facts = json.loads(entry["payload"])
            user = shared.ask(f"/api/signals/{entry['signal']}").json()["user"]
            assert facts["user"] == f"publisher-{facts['user_id']}"
            assert user not in entry["payload"]
            assert names.setdefault(facts["user"], user) == user

    assert len(set(names.values())) == len(names) == SIGNALS


def test_body_is_head_items_and_count(shared: Api) -> None:
    body = page(shared)

    assert set(body) == {"head", "items", "count"}
    assert body["count"] == len(body["items"]) == 2 * SIGNALS
    assert set(body["items"][0]) == {"position", "kind", "signal", "payload", "previous", "hash"}


def test_head_is_that_of_the_database(shared: Api) -> None:
    head = LedgerHead.objects.now()

    assert page(shared)["head"] == {"position": head.position, "hash": head.hash}


@pytest.mark.parametrize(
    ("query", "positions"),
    [
        ("limit=2", [1, 2]),
        ("after=2&limit=2", [3, 4]),
        ("after=0&limit=1", [1]),
        (f"after={2 * SIGNALS}", []),
        ("after=999999999", []),
    ],
)
def test_pages_follow_each_other_by_position(shared: Api, query: str, positions: list[int]) -> None:
    assert [entry["position"] for entry in page(shared, query)["items"]] == positions


@pytest.mark.parametrize(
    ("query", "field", "most", "code"),
    [
        ("limit=0", "limit", 500, "parameter_out_of_range"),
        ("limit=501", "limit", 500, "parameter_out_of_range"),
        ("limit=ten", "limit", 500, "invalid_parameter"),
        ("after=-1", "after", 999_999_999, "invalid_parameter"),
        ("after=1000000000", "after", 999_999_999, "parameter_out_of_range"),
        ("after=1&after=2", "after", None, "invalid_parameter"),
    ],
)
def test_bad_parameters_are_refused(shared: Api, query: str, field: str, most: int | None, code: str) -> None:
    told = {} if most is None else {"max": most}
    refusal(shared.ask(f"/api/signals/ledger?{query}"), 400, code, field=field, **told)


def test_page_costs_two_queries(shared: Api) -> None:
    with count_queries() as asked:
        page(shared)

    assert len(asked) == 2, asked
