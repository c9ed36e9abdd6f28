"""Arrows go one way: config → status → news → signals_feed → market → instruments → accounts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("config", "status", "news", "signals_feed", "market", "instruments", "accounts", "core")
# Pure modules know neither Django nor the clock, so that they can be tested as tables.
PURE = (
    "accounts/keys/text.py",
    "core/plain_json.py",
    "serving/draining.py",
    "serving/readiness/findings.py",
    "serving/workers/slot.py",
    "instruments/hours.py",
    "market/engine/admission.py",
    "market/engine/bus/journal.py",
    "market/engine/feeds/simulated/activity.py",
    "market/engine/feeds/simulated/noise.py",
    "market/engine/feeds/simulated/profiles.py",
    "market/engine/feeds/venues/venue_quotes.py",
    "market/engine/feeds/simulated/simulated_market.py",
    "market/engine/files/aggtrades.py",
    "market/engine/files/bi5.py",
    "market/engine/files/tick_file.py",
    "market/engine/files/dukascopy.py",
    "market/engine/files/format.py",
    "market/engine/files/histdata.py",
    "market/engine/files/quotes.py",
    "market/engine/files/recording.py",
    "market/engine/importing/batch_check.py",
    "market/engine/importing/coarser.py",
    "market/engine/importing/minutes.py",
    "market/engine/importing/tally.py",
    "market/prices/order_flow.py",
    "market/prices/candles.py",
    "market/prices/day.py",
    "market/prices/order_flow.py",
    "core/steady_clock.py",
    "market/prices/records.py",
    "market/streams/docs/asyncapi.py",
    "market/streams/hub/backlog.py",
    "market/streams/chaos.py",
    "market/streams/hub/delivery.py",
    "market/streams/docs/examples.py",
    "market/streams/wire.py",
    "serving/websocket/framing.py",
    "market/streams/protocol/reading.py",
    "market/streams/latency.py",
    "market/streams/protocol/messages.py",
    "market/streams/protocol/replies.py",
    "market/streams/protocol/refusals.py",
    "market/streams/resume.py",
    "market/streams/protocol/subscriptions.py",
    "analysis/answer.py",
    "analysis/offline.py",
    "analysis/drivers/published.py",
    "analysis/drivers/order_flow.py",
    "analysis/drivers/candles.py",
    "analysis/facts.py",
    "analysis/levels.py",
    "analysis/opinion.py",
    "analysis/samples.py",
    "news/ingest/addresses.py",
    "news/ingest/parsing.py",
    "news/ingest/stories.py",
    "news/ingest/subjects.py",
    "news/labels.py",
    "news/language/endpoint.py",
    "news/language/protocols.py",
    "news/sentiment/features.py",
    "news/sentiment/signs.py",
    "news/sentiment/lexicon.py",
    "news/sentiment/linear.py",
    "signals_feed/publishers/equity.py",
    "signals_feed/judging/rules.py",
    "signals_feed/wire.py",
    "demo/publisher_rules.py",
    "signals_feed/ledger/proof.py",
    "signals_feed/publishing/terms.py",
    "signals_feed/ledger/trigger_rules.py",
    "signals_feed/publishers/scorecards.py",
    "signals_feed/judging/levels.py",
    "status/picture.py",
)
IMPURE = {"django", "rest_framework", "channels", "time", "asyncio"}


def sources(room: str) -> list[Path]:
    return sorted(path for path in (ROOT / room).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def forbidden(room: str, names: Iterator[str]) -> set[str]:
    above = set(ROOMS[: ROOMS.index(room)]) | {"tests"}
    return {name for name in names if name.split(".")[0] in above}


@pytest.mark.parametrize("room", ROOMS)
def test_room_imports_only_from_its_right(room: str) -> None:
    wrong = {
        str(path.relative_to(ROOT)): found
        for path in sources(room)
        if (found := forbidden(room, imported(path)))
    }

    assert wrong == {}


def test_an_import_to_the_left_would_be_seen() -> None:
    assert forbidden("accounts", iter(["accounts.models", "market.runtime"])) == {"market.runtime"}


@pytest.mark.parametrize("name", PURE)
def test_pure_module_knows_neither_django_nor_the_clock(name: str) -> None:
    assert {found for found in imported(ROOT / name) if found.split(".")[0] in IMPURE} == set()
