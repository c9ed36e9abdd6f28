"""Arrows go one way: config → status → news → signals_feed → market → instruments → accounts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("config", "status", "news", "signals_feed", "market", "instruments", "accounts")
# Pure modules know neither Django nor the clock, so that they can be tested as tables.
PURE = (
    "accounts/keys.py",
    "accounts/slot_telling.py",
    "accounts/marks.py",
    "accounts/plain_json.py",
    "accounts/spent.py",
    "config/draining.py",
    "config/readiness/verdict.py",
    "config/supervision/place.py",
    "config/redaction.py",
    "instruments/hours.py",
    "market/back_office/words.py",
    "market/engine/checks.py",
    "market/engine/lateness.py",
    "market/engine/outliers.py",
    "market/engine/past.py",
    "market/engine/feeds/activity.py",
    "market/engine/feeds/history/minutes.py",
    "market/engine/feeds/noise.py",
    "market/engine/feeds/oanda_lines.py",
    "market/engine/feeds/profiles.py",
    "market/engine/feeds/quotes.py",
    "market/engine/feeds/rfc3339.py",
    "market/engine/feeds/simulation.py",
    "market/engine/files/aggtrades.py",
    "market/engine/files/bi5.py",
    "market/engine/files/detection.py",
    "market/engine/files/dukascopy.py",
    "market/engine/files/format.py",
    "market/engine/files/histdata.py",
    "market/engine/files/lines.py",
    "market/engine/files/moments.py",
    "market/engine/files/quotes.py",
    "market/engine/files/recording.py",
    "market/engine/importing/door.py",
    "market/engine/importing/coarser.py",
    "market/engine/importing/minutes.py",
    "market/engine/importing/tally.py",
    "market/prices/absorption.py",
    "market/prices/candles.py",
    "market/prices/day.py",
    "market/prices/orderflow.py",
    "market/prices/steady_clock.py",
    "market/prices/ticks.py",
    "market/prices/timeframes.py",
    "market/prices/usual.py",
    "market/streams/about.py",
    "market/streams/asyncapi.py",
    "market/streams/backlog.py",
    "market/streams/chaos.py",
    "market/streams/delivery.py",
    "market/streams/examples.py",
    "market/streams/frames.py",
    "market/streams/framing.py",
    "market/streams/groups.py",
    "market/streams/inbound.py",
    "market/streams/kinds.py",
    "market/streams/latency.py",
    "market/streams/members.py",
    "market/streams/messages.py",
    "market/streams/outgoing.py",
    "market/streams/protocol.py",
    "market/streams/reading.py",
    "market/streams/refusals.py",
    "market/streams/resume.py",
    "market/streams/subscriptions.py",
    "news/analysis/answer.py",
    "news/analysis/confidence.py",
    "news/analysis/drivers/news.py",
    "news/analysis/drivers/order_flow.py",
    "news/analysis/drivers/signals.py",
    "news/analysis/drivers/trend.py",
    "news/analysis/drivers/volatility.py",
    "news/analysis/facts.py",
    "news/analysis/flow.py",
    "news/analysis/indicators.py",
    "news/analysis/levels.py",
    "news/analysis/moments.py",
    "news/analysis/offline.py",
    "news/analysis/opinion.py",
    "news/analysis/samples.py",
    "news/analysis/summary.py",
    "news/calibration/moves.py",
    "news/ingest/addresses.py",
    "news/ingest/cleaning.py",
    "news/ingest/dating.py",
    "news/ingest/names.py",
    "news/ingest/networks.py",
    "news/ingest/parsing.py",
    "news/ingest/schedule.py",
    "news/ingest/similarity.py",
    "news/ingest/stories.py",
    "news/ingest/subjects.py",
    "news/ingest/unpacking.py",
    "news/labels.py",
    "news/language/breaker.py",
    "news/language/endpoint.py",
    "news/language/problem.py",
    "news/language/protocols.py",
    "news/language/schema.py",
    "news/sentiment/features.py",
    "news/sentiment/figures.py",
    "news/sentiment/leaning.py",
    "news/sentiment/lexicon.py",
    "news/sentiment/linear.py",
    "news/sentiment/signs.py",
    "news/sentiment/text.py",
    "news/sentiment/weights.py",
    "news/sides.py",
    "signals_feed/chart.py",
    "signals_feed/closing.py",
    "signals_feed/equity.py",
    "signals_feed/frames.py",
    "signals_feed/house.py",
    "signals_feed/judging.py",
    "signals_feed/payloads.py",
    "signals_feed/proof.py",
    "signals_feed/publishing.py",
    "signals_feed/refusals.py",
    "signals_feed/rules.py",
    "signals_feed/scorecards.py",
    "signals_feed/watching/book.py",
    "signals_feed/watching/highs.py",
    "signals_feed/watching/minutes.py",
    "signals_feed/watching/side.py",
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
    assert forbidden("accounts", iter(["accounts.models", "market.services"])) == {"market.services"}


@pytest.mark.parametrize("name", PURE)
def test_pure_module_knows_neither_django_nor_the_clock(name: str) -> None:
    assert {found for found in imported(ROOT / name) if found.split(".")[0] in IMPURE} == set()
