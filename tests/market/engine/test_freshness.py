"""A source goes silent and comes back: what clients read and staff see, with the engine in the web process
and beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from pytest_django import Settings
from time_machine import Traveller

from core.clock import now_ms
from market.engine.bus.redis_bus import RedisBus
from market.engine.engine import Engine
from market.engine.runner import Runner
from market.prices.quotes import Prices
from market.prices.records import Tick
from market.runtime import market
from tests.client import Api, Server
from tests.factories import make_account, make_instrument, make_key, make_tier, make_user
from tests.market.running import no_feed
from tests.patience import wait_until
from tests.programs.services import redis
from tests.staff import staff_client

QUOTE, PAGE = "/api/market/EURUSD/quote", "/admin/market/status/"


class Stage:
    """A web process with staff and a client in front of it, and the engine that it hears."""

    def __init__(self, server: Server, runner: Runner) -> None:
        self.server, self.runner = server, runner
        staff = staff_client(make_user(is_staff=True, is_superuser=True))
        key = make_key(make_account(tier=make_tier("roomy", requests_per_minute=100_000)))
        self.api = Api(server, key)
        self.api.cookies.set("sessionid", staff.cookies["sessionid"].value)

    def push(self, bid: float) -> None:
        """A tick of now, and wait until it is on the board."""
        tick = Tick("EURUSD", bid, bid + 0.0002, now_ms())
        self.server.run(self._push(tick))
        wait_until(lambda: (quote := self.api.ask(QUOTE)).status_code == 200 and quote.json()["bid"] == bid)

    def headers(self) -> tuple[str, int]:
        headers = self.api.ask(QUOTE).headers
        return headers["X-Market-State"], int(headers["X-Quote-Age-Ms"])

    def row(self) -> tuple[bool, str]:
        """Whether the page shows it red, and its words."""
        text = self.api.get(PAGE).text
        found = re.search(r'<tr role="row" class="([^"]*)">\s*<th(.*?)</tr>', text, re.DOTALL)
        assert found is not None
        return "status-row-bad" in found[1], " ".join(re.sub(r"<[^>]*>", " ", found[2]).split())

    async def _push(self, tick: Tick) -> None:
        assert self.runner.push("push:desk", [tick]) == [None]


@pytest.fixture(params=["within", "beside"])
def stage(
    request: pytest.FixtureRequest,
    clock: Traveller,
    transactional_db: None,
    settings: Settings,
    tmp_path: Path,
) -> Iterator[Stage]:
    make_instrument("EURUSD")
    if request.param == "within":
        settings.REDIS_URL = ""
        with Server() as server:
            assert market.runner is not None
            stage = Stage(server, market.runner)
            with stage.api:
                yield stage
        return
    with redis(tmp_path) as url:
        settings.REDIS_URL = url
        with Server() as server:
            runner = Runner(Engine(Prices("bid")), no_feed, RedisBus(url))
            stage = Stage(server, runner)
            server.run(runner.writer.wait_for_lease())
            server.run(runner.start())
            with stage.api:
                yield stage
            server.run(runner.stop())


@pytest.mark.django_db(transaction=True)
def test_web_process_takes_no_price_for_settled_before_it_hears_an_engine(
    settings: Settings, tmp_path: Path
) -> None:
    with redis(tmp_path) as url:
        settings.REDIS_URL = url
        with Server() as server:
            assert market.is_unsettled("EURUSD")
            runner = Runner(Engine(Prices("bid")), no_feed, RedisBus(url))
            server.run(runner.writer.wait_for_lease())
            server.run(runner.start())
            wait_until(lambda: not market.is_unsettled("EURUSD"))
            server.run(runner.stop())


def test_silent_source_makes_the_quote_stale_until_it_is_back(stage: Stage, clock: Traveller) -> None:
    stage.push(1.08)
    assert stage.headers() == ("open", 0)

    clock.shift(60.001)
    assert stage.headers() == ("stale", 60_001)
    is_red, words = stage.row()
    assert is_red
    assert "stale quoted 60 s ago 1.08000 1.08020" in words

    stage.push(1.09)
    assert stage.headers() == ("open", 0)
    is_red, words = stage.row()
    assert not is_red
    assert "open quoted 0.0 s ago 1.09000 1.09020" in words

    # Said by the engine itself, once a second: what it said before the clock was moved is a minute old.
    wait_until(
        lambda: "push:desk" in (text := stage.api.get(PAGE).text) and "No engine is running" not in text
    )
    bearer = {"Authorization": f"Bearer {settings.METRICS_TOKEN}"}
    metrics = stage.api.get("/metrics", headers=bearer).text
    assert 'tickwire_instruments{state="open"} 1.0' in metrics
    assert 'tickwire_ticks_total{feed="push:desk"} ' in metrics
