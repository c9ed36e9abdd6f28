"""GET /api/signals/ledger: from its JSON alone anyone can tell that nothing was altered or left out."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import timedelta
from typing import Any

import pytest

from signals_feed.exits import Tick
from signals_feed.ledger.ledger import SHOWN, LedgerHead, cancellation_payload
from signals_feed.models import Signal
from signals_feed.record import FIELDS
from tests.client import Api
from tests.contract.openapi.documented import SCHEMAS, operation
from tests.contract.published import end, make_published, quoted
from tests.factories import NOON, make_instrument

pytestmark = [pytest.mark.services, pytest.mark.pooled]

FIRST_PREVIOUS_HASH = "0" * 64
SIGNALS = 4
LEDGER = "/api/signals/ledger"


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

    body, head = page(shared), LedgerHead.objects.now()
    assert set(body) == {"head", "items", "count"}
    assert (
        body["head"]
        == {"position": position, "hash": previous}
        == {"position": head.position, "hash": head.hash}
    )
    assert body["count"] == len(body["items"]) == position == 2 * SIGNALS
    entry = body["items"][0]
    assert set(entry) == {"position", "kind", "signal", "payload", "previous", "hash"}
    facts = json.loads(entry["payload"])
    assert [facts[name] for name in ("position", "kind", "signal")] == [1, entry["kind"], entry["signal"]]
    assert (facts["symbol"], facts["direction"], facts["entry"]) == ("EURUSD", "buy", "1.08424")


def listed_members(kind: str) -> set[str]:
    """Of the payload of a kind, as the document lists them."""
    (row,) = re.findall(rf"^\| `{kind}` \| (.*) \|$", operation(LEDGER)["description"], re.MULTILINE)
    return {"position", "kind", "signal", *re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize("kind", ["publish", "close"])
def test_payload_has_the_members_that_the_document_lists(shared: Api, kind: str) -> None:
    (example,) = operation(LEDGER)["responses"]["200"]["content"]["application/json"]["examples"].values()
    for items in (page(shared)["items"], example["value"]["items"]):
        payloads = [json.loads(item["payload"]) for item in items if item["kind"] == kind]
        assert payloads
        assert all(set(payload) == listed_members(kind) for payload in payloads)


def test_document_lists_what_is_recorded_of_the_other_kinds() -> None:
    always = {"position", "kind", "signal", "written"}
    assert listed_members("cancel") == {*always, *cancellation_payload(Signal())}
    assert listed_members("remove") == always
    # An arm of before the offset was known lacks it.
    recorded = FIELDS | {"arm": (*FIELDS["arm"], "ahead_ms")}
    for kind in ("arm", "fill", "close_request", "archive"):
        assert listed_members(kind) - {"signal"} == always - {"signal"} | set(recorded[kind])
    further = operation(LEDGER)["description"].rpartition("There is no")[2]
    members = {*FIELDS["publish"], *FIELDS["cancel"], *Tick._fields[5:], "simulated"}
    assert members - set(re.findall(r"`(\w+)`", further)) == {"written", "number", "demo"}


def test_document_has_the_shown_evidence_by_its_own_names() -> None:
    shown = {"rule_text", "time", "accepted_at", "feed", "simulated", *SHOWN} - {"at"}
    assert set(SCHEMAS["Evidence"]["properties"]) == shown
    told = "with `at` for its `time`, `accepted_ms` for its `accepted_at`, and without `rule_text`"
    assert told in operation(LEDGER)["description"]


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
