"""Pure modules know neither Django nor the clock, nor does anything that comes with them: they are tested as
tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .modules import ROOMS, imports, listed, modules

# Modules, or packages with all that is in them.
PURE: tuple[str, ...] = (
    "accounts.key_text",
    "analysis.answer",
    "analysis.built_in",
    "analysis.drivers.candles",
    "analysis.drivers.order_flow",
    "analysis.drivers.published",
    "analysis.facts",
    "analysis.levels",
    "analysis.opinion",
    "analysis.samples",
    "core.events.kinds",
    "core.plain_json",
    "core.steady_clock",
    "demo.publisher_rules",
    "instruments.facts",
    "instruments.hours",
    "instruments.sources",
    "instruments.sheets",
    "market.engine.admission",
    "market.engine.bus.journal",
    "market.engine.feeds.venues.venue_quotes",
    "market.engine.files",
    "market.engine.importing.batch_check",
    "market.engine.importing.coarser",
    "market.engine.importing.minutes",
    "market.engine.importing.tally",
    "market.prices",
    "market.simulated",
    "market.streams.chaos",
    "market.streams.docs",
    "market.streams.hub.backlog",
    "market.streams.hub.delivery",
    "market.streams.hub.subscribers",
    "market.streams.protocol.messages",
    "market.streams.protocol.reading",
    "market.streams.protocol.refusals",
    "market.streams.protocol.replies",
    "market.streams.protocol.subscriptions",
    "market.streams.resume",
    "market.streams.wire",
    "news.addresses",
    "news.digests",
    "news.ingest.parsing",
    "news.ingest.stories",
    "news.labels",
    "news.language.endpoint",
    "news.sentiment.features",
    "news.sentiment.lexicon",
    "news.sentiment.linear",
    "news.sentiment.model",
    "news.sentiment.signs",
    "pages.watchlist",
    "serving.draining",
    "serving.http.bounds",
    "serving.readiness.findings",
    "serving.websocket.bounds",
    "serving.websocket.connection",
    "serving.websocket.framing",
    "serving.workers.slot",
    "signals_feed.levels",
    "signals_feed.rules",
    "signals_feed.ledger.proof",
    "signals_feed.ledger.trigger_rules",
    "signals_feed.publishers.equity",
    "signals_feed.publishers.scorecards",
    "signals_feed.wire",
    "status.picture",
)
IMPURE = {
    "django",
    "rest_framework",
    "channels",
    "time",
    "asyncio",
    "redis",
    "psycopg",
    "random",
    "prometheus_client",
}


def brought(name: str) -> Iterator[str]:
    """The modules of ours that Python executes to import this one: it, its packages, and theirs."""
    seen: set[str] = set()
    todo = [name]
    while todo:
        one = todo.pop()
        if one in seen or one not in modules():
            continue
        seen.add(one)
        yield one
        parts = one.split(".")
        todo += [".".join(parts[:length]) for length in range(1, len(parts))]
        todo += [each.module for each in imports(one) if not each.is_late and not each.is_for_types]


def faults(name: str) -> list[str]:
    return [
        f"{one} imports {each.module}"
        for one in brought(name)
        for each in imports(one)
        if not each.is_for_types and each.module.partition(".")[0] in IMPURE
    ]


def pure_modules() -> list[str]:
    return [name for name in modules() if any(name == each or name.startswith(f"{each}.") for each in PURE)]


@pytest.mark.parametrize("name", pure_modules())
def test_pure_module_brings_nothing_impure(name: str) -> None:
    found = faults(name)
    assert not found, listed(found, f"{name} is pure. Let the caller hand it what these bring:")


def test_control_what_a_package_brings_is_seen() -> None:
    assert any("django" in fault for fault in faults("instruments.catalogue"))


def test_every_name_in_the_list_is_a_module() -> None:
    gone = [each for each in PURE if each not in modules()]
    assert not gone, f"{', '.join(gone)}: no such module; give its new name in PURE"
    assert set(ROOMS) >= {each.partition(".")[0] for each in PURE}
