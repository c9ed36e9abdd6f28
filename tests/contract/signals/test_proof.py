"""GET /api/signals/{id}/proof: from its JSON alone anyone computes `pnl` again, to the last digit."""

from __future__ import annotations

from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import msgspec
import pytest

from core.times import read_iso
from instruments.models import Instrument
from signals_feed.api.proof import SAMPLE
from signals_feed.models import Signal
from signals_feed.publishing.actions import cancel
from tests.client import Api
from tests.contract.answers import MILLISECONDS
from tests.contract.published import end, make_published, quoted
from tests.factories import NOON, make_instrument, make_signal, make_user
from tests.signals_feed.filled_signals import make_filled, make_waiting, reach_target

pytestmark = pytest.mark.services

LATER = NOON + timedelta(hours=3)
EXAMPLE: dict[str, Any] = msgspec.to_builtins(SAMPLE)
ENTRY = quoted("1.08400", "1.08424", epoch="k3v9", seq=41)


@pytest.fixture(scope="module", autouse=True)
def eurusd(shared: Api) -> Instrument:
    return make_instrument("EURUSD")


def proof(shared: Api, signal: Signal) -> dict[str, Any]:
    response = shared.ask(f"/api/signals/{signal.pk}/proof")
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def computed(body: dict[str, Any]) -> dict[str, str]:
    """The steps carried out again by somebody who has nothing but the answer."""
    known = {given["name"]: Decimal(given["exact"]) for given in body["inputs"]}
    found = {}
    for step in body["steps"]:
        value = eval(step["formula"], {"min": min, "max": max, "abs": abs}, known)  # noqa: S307
        if step["decimals"] is not None:
            value = value.quantize(Decimal(1).scaleb(-step["decimals"]), ROUND_HALF_UP) + 0
        known[step["name"]] = value
        found[step["name"]] = value
    return {name: f"{value:f}" for name, value in found.items()}


ENDINGS = {
    "target": ("target", "take_profit", "1.09300", "1.09330"),
    "stop, past a gap": ("stop", "stop_loss", "1.07771", "1.07799"),
    "by hand": ("current", "manual", "1.08413", "1.08440"),
    "expired": ("current", "expired", "1.08555", "1.08571"),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
@pytest.mark.parametrize("direction", ["buy", "sell"])
def test_every_number_can_be_computed_again(
    shared: Api, eurusd: Instrument, direction: str, ending: tuple[str, str, str, str]
) -> None:
    rule, reason, bid, ask = ending
    # The publisher named a worse price than the market's.
    entry = "1.08431" if direction == "buy" else "1.08377"
    signal = end(
        make_published(eurusd, ENTRY, direction=direction, entry=entry), quoted(bid, ask, LATER), rule, reason
    )

    body = proof(shared, signal)

    assert (
        computed(body).items()
        >= {
            "pnl": str(signal.pnl),
            "pnl_percent": str(signal.pnl_percent),
            "pnl_r": str(signal.pnl_r),
            "best_r": str(signal.best_r),
            "worst_r": str(signal.worst_r),
        }.items()
    )
    assert {step["name"]: Decimal(step["exact"]) for step in body["steps"]} == {
        name: Decimal(value) for name, value in computed(body).items()
    }
    for each in (*body["inputs"], *body["steps"]):
        assert type(each["value"]) in (int, float)
        assert float(each["exact"]) == each["value"]
        assert "E" not in each["exact"]
    assert shared.ask(f"/api/signals/{signal.pk}").json()["pnl"] == float(computed(body)["pnl"])


def test_example_of_the_reference_can_be_computed_again_and_could_have_happened() -> None:
    shown = {step["name"]: Decimal(step["exact"]) for step in EXAMPLE["steps"]}
    assert {name: Decimal(value) for name, value in computed(EXAMPLE).items()} == shown
    # At the target it is over.
    assert shown["best_r"] == shown["pnl_r"]


def test_later_change_of_the_pip_size_changes_no_proof_of_the_arithmetic_and_the_ledger(shared: Api) -> None:
    gbpusd = make_instrument("GBPUSD")
    signal = end(make_published(gbpusd, ENTRY), quoted("1.08777", "1.08790", LATER))
    before = proof(shared, signal)
    Instrument.objects.filter(pk=gbpusd.pk).update(pip_size=Decimal("0.001"))
    assert proof(shared, signal) == before
    assert computed(before)["pnl"] == str(signal.pnl) == "35.3"
    given = {each["name"]: Decimal(each["exact"]) for each in before["inputs"]}
    gained = given["exit_bid"] - max(given["entry"], given["entry_ask"])
    assert round(gained / given["pip_size"], 1) == signal.pnl
    marks = before["ledger"]
    entries = shared.ask(f"/api/signals/ledger?after={marks[0]['position'] - 1}&limit=2").json()["items"]
    assert marks == [{name: each[name] for name in ("position", "kind", "hash")} for each in entries]


def test_ticks_at_entry_and_exit_are_shown_with_the_rule(shared: Api, eurusd: Instrument) -> None:
    closing = quoted("1.09300", "1.09330", LATER, epoch="k3v9", seq=977)
    body = proof(shared, end(make_published(eurusd, ENTRY), closing, "target", "take_profit"))

    assert body["entry"]["time"] == "2026-11-18T12:00:00.000Z"
    assert (
        body["entry"]["evidence"].items()
        >= {
            "source": "tick",
            "rule": "quote",
            "time": "2026-11-18T12:00:00.000Z",
            "epoch": "k3v9",
            "seq": 41,
            "bid": 1.084,
            "ask": 1.08424,
        }.items()
    )
    assert body["exit"]["close_reason"] == "take_profit"
    assert body["exit"]["evidence"].items() >= {"rule": "target", "bid": 1.093, "seq": 977}.items()
    assert body["exit"]["evidence"]["rule_text"] == "The target fills at its own price."
    assert MILLISECONDS.fullmatch(body["exit"]["time"])


def test_active_signal_has_its_entry_and_no_result(shared: Api, eurusd: Instrument) -> None:
    body = proof(shared, make_published(eurusd, ENTRY, user=make_user("anna")))
    assert (body["user"], body["symbol"], body["direction"], body["status"]) == (
        *("anna", "EURUSD", "buy"),
        "active",
    )
    assert body["exit"] is None
    assert [step["name"] for step in body["steps"]] == ["tradable_price", "paid", "risk"]
    assert not [each for each in body["inputs"] if each["name"].startswith(("exit", "close"))]


def test_cancelled_signal_tells_what_staff_wrote(shared: Api, eurusd: Instrument) -> None:
    signal = make_published(eurusd, ENTRY)
    cancel(signal, reason="Fat finger", by="boss")
    body = proof(shared, end(signal, quoted("1.08413", "1.08440", LATER), "current", "cancelled"))
    assert body["exit"]["cancel_reason"] == "Fat finger"
    assert [entry["kind"] for entry in body["ledger"]] == ["publish", "cancel", "close"]


def test_signal_that_is_filled_afterwards_has_its_arm_and_fill_and_its_result_runs_from_it(
    shared: Api, eurusd: Instrument
) -> None:
    body = proof(shared, signal := make_waiting())
    assert (body["fill"], body["mark"], body["arm"]["seq"], body["arm"]["wait_ms"]) == (None, None, 7, 1000)
    assert [step["name"] for step in body["steps"]] == ["tradable_price"]
    body = proof(shared, signal := reach_target(make_filled()))
    assert (body["mark"], body["mark_reason"]) == ("verified_at_venue", None)
    assert body["witnessed_before_end"] is False
    assert body["fill"]["price"] == 1.0844
    assert body["entry"]["evidence"]["rule_text"].startswith("It only served to check the terms")
    assert body["fill"]["evidence"].items() >= {"feed": "kraken", "simulated": False, "seq": 8}.items()
    waited = read_iso(body["fill"]["evidence"]["accepted_at"]) - read_iso(body["arm"]["time"])
    assert waited >= timedelta(seconds=1)
    known = computed(body)
    assert (known["paid"], known["pnl"]) == ("1.0844", str(signal.pnl))


def test_signal_of_a_time_without_evidence_is_still_computed(shared: Api) -> None:
    signal = make_signal(status="closed", close_price=Decimal("1.0867"))
    body = proof(shared, signal)
    assert (body["entry"]["evidence"], body["exit"]["evidence"]) == (None, None)
    assert Decimal(computed(body)["pnl"]) == signal.pnl == 25
    assert (body["mark"], body["arm"], body["fill"]) == ("not_verified", None, None)
    # The ledger of this test has never heard of it.
    assert "the ledger has no publish of it" in body["mark_reason"]
