"""PostgreSQL stops or is killed: quotes, candles, new streams and pushed ticks go on with known keys, and
what was decided meanwhile or afterwards holds in the end. How fast, tests/nightly measures."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from redis import Redis

from accounts.key_text import generate_key, prefix_of
from accounts.keys.issuing import revoke_key
from accounts.models import ApiKey
from core.events.kinds import EventKind
from core.events.outbox import channel_of
from tests.contract.streams.client import next_frame
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.patience import wait_until
from tests.reliability.clients.subscribed import subscribed
from tests.reliability.fixtures import Tell
from tests.reliability.services.engine_processes import engines
from tests.reliability.services.private_servers import PrivatePostgres, PrivateRedis
from tests.reliability.services.processes import Installation, Process, http
from tests.reliability.services.stream_services import StreamService

# The second has ticks at an even rate, where clients in C look how late they come.
SYMBOL, FLOWING = "OUTLASTS", "FLOWS"
PAGES, TURNS = 12, 3
T = TypeVar("T")


class Running(NamedTuple):
    """A service in which two keys and an ingest key are known, on a database that a test takes away."""

    installation: Installation
    server: Process
    database: PrivatePostgres
    stack: ExitStack
    redis: PrivateRedis
    streams: StreamService
    key: str
    unused: str

    def push(self, bid: float) -> bool:
        tick = {"symbol": SYMBOL, "bid": bid, "ask": bid + 0.5, "time": time.time_ns() // 1_000_000}
        return self.streams.push([tick])

    def page(self) -> int:
        """One that asks who is there."""
        headers = {"Cookie": f"sessionid={'a' * 32}"}
        return http.get(f"{self.server.url}/accounts/login/", headers=headers).status_code

    def quote(self) -> float:
        return float(self.server.ask(f"/api/market/{SYMBOL}/quote", self.key).json()["bid"])

    @contextmanager
    def killed(self) -> Iterator[None]:
        self.stack.close()
        try:
            yield
        finally:
            self.stack.enter_context(self.database.running())

    def without_database(self, how: str) -> AbstractContextManager[None]:
        return self.database.paused() if how == "stopped" else self.killed()

    def known_key(self) -> str:
        with self.installation.orm():
            key = make_key(make_account(tier="roomy"))
        wait_until(lambda: self.status(key) == 200)
        return key

    def revoke(self, key: str) -> None:
        with self.installation.orm():
            assert revoke_key(ApiKey.objects.get(prefix=prefix_of(key)), by="test")

    def status(self, key: str) -> int:
        return self.server.ask("/api/limits", key).status_code


@contextmanager
def started(directory: Path) -> Iterator[Running]:
    database, redis = PrivatePostgres(directory), PrivateRedis(directory)
    # The database goes last: who stops without it waits for it.
    with ExitStack() as with_database, ExitStack() as stack:
        with_database.enter_context(database.running())
        stack.enter_context(redis.running())
        installation = Installation(directory, database.url, redis.url)
        with installation.orm():
            account = make_account(tier=make_tier("roomy", requests_per_minute=100_000, streams=1_000))
            key, unused = (make_key(account) for _ in range(2))
        streams = StreamService(installation, [FLOWING])
        with installation.orm():
            make_instrument(SYMBOL)
        stack.enter_context(engines(installation, 1))
        # Refusing is the subject, so it waits for its database as long as the product does.
        (server,) = stack.enter_context(installation.serve(1, DEADLINES_TIMES="1"))
        streams.servers.append(server)
        running = Running(installation, server, database, with_database, redis, streams, key, unused)
        wait_until(lambda: running.push(1.0))
        wait_until(lambda: server.ask(f"/api/market/{SYMBOL}/quote", key).status_code == 200)
        assert running.quote() == 1.0
        yield running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with started(tmp_path_factory.mktemp("outage")) as running:
        yield running


def first_bid_of_a_new_stream(service: Running) -> float:
    with subscribed(service.server.port, service.key, [SYMBOL], features=["snapshot"]) as (socket, _):
        return float(next_frame(socket)["bid"])


class Noted:
    """What was asked, and what came of it."""

    def __init__(self) -> None:
        self.seen: dict[str, Counter[Any]] = defaultdict(Counter)

    def __call__(self, kind: str, ask: Callable[[], T]) -> T:
        answer = ask()
        self.seen[kind][answer] += 1
        return answer


def ask_pages(service: Running, noted: Noted) -> None:
    """More at once than there are threads for them."""
    with ThreadPoolExecutor(PAGES) as pool:
        list(pool.map(lambda _: noted("pages", service.page), range(PAGES)))


def ask_everything(service: Running, noted: Noted, bid: float) -> None:
    wait_until(lambda: noted("pushed", lambda: service.push(bid)))
    wait_until(lambda: noted("quotes", lambda: service.quote() >= bid))
    paths = [("candles", f"/api/market/{SYMBOL}?timeframe=1m", service.key)]
    paths += [("others", "/api/signals", service.key), ("others", "/api/symbols", service.unused)]
    for kind, path, key in (*paths, ("others", f"/api/analysis/{SYMBOL}", service.key)):
        noted(kind, lambda: service.server.ask(path, key).status_code)  # noqa: B023 - asked at once
    assert noted("streams", lambda: first_bid_of_a_new_stream(service)) == bid


@pytest.mark.row("8, 52", "quotes, streams and pushed ticks go on; everything else gets 503, never 500")
def test_quotes_and_streams_and_pushed_ticks_work_without_the_database(service: Running, tell: Tell) -> None:
    noted, bids = Noted(), itertools.count(2.0)
    ask_everything(service, Noted(), next(bids))
    with service.without_database("killed"):
        # Before anything else finds the connections gone.
        ask_pages(service, noted)
        for bid in itertools.islice(bids, TURNS):
            ask_everything(service, noted, bid)
        stranger = service.server.ask("/api/symbols", generate_key()).status_code
    tell(f"other requests {dict(noted.seen['others'])}; an unknown key: {stranger}")
    # Known in another process only, or never: nobody can tell while the database is away.
    assert set(noted.seen["others"]) <= {200, 503}
    assert noted.seen["others"][503] > 0
    assert (set(noted.seen["pages"]), set(noted.seen["candles"]), stranger) == ({503}, {200}, 503)
    assert service.server.metric("tickwire_keys_trusted_total") > 0
    wait_until(lambda: service.server.ask("/api/symbols", generate_key()).status_code == 401)
    wait_until(lambda: service.server.ask("/api/signals", service.key).status_code == 200)
    wait_until(lambda: service.page() == 200)


@pytest.mark.row("8", "a revocation after an outage takes effect")
def test_a_revocation_after_an_outage_takes_effect(service: Running) -> None:
    leaving = service.known_key()
    with service.without_database("killed"):
        symbols = {service.server.ask("/api/symbols", service.key).status_code for _ in range(TURNS)}
        assert symbols == {200}
    service.revoke(leaving)
    wait_until(lambda: service.status(leaving) == 401)
    wait_until(lambda: service.server.ask("/readyz").json()["checks"]["control_events"] == "ok")
    wait_until(lambda: service.status(service.key) == 200)


@pytest.mark.row("8", "a revocation takes effect while connections break")
def test_a_revocation_takes_effect_while_connections_break(service: Running) -> None:
    for _ in range(3):
        key = service.known_key()
        service.database.break_connections()
        service.revoke(key)
        wait_until(lambda: service.status(key) == 401)  # noqa: B023 - within its turn
        service.database.break_connections()


@pytest.mark.row("15", "a revocation takes effect even when the database cannot be reached")
def test_a_revocation_travels_over_redis_while_the_database_is_down(service: Running) -> None:
    key = service.known_key()
    with service.installation.orm():
        doomed = ApiKey.objects.get(prefix=prefix_of(key))
    facts = {"account": doomed.account_id, "key": doomed.pk, "prefix": doomed.prefix}
    with service.without_database("stopped"):
        wait_until(lambda: service.server.metric("tickwire_control_events_age_seconds") > 2)
        assert service.server.ask("/api/symbols", key).status_code == 200
        # As a process tells it that still reaches the database.
        told = {"position": 10**9, "kind": EventKind.KEY_REVOKED, "facts": facts}
        with Redis.from_url(service.redis.url) as client:
            client.publish(channel_of(service.redis.url), json.dumps(told))
        wait_until(lambda: service.server.ask("/api/symbols", key).status_code != 200)
        assert service.server.metric("tickwire_control_events_cut_off") == 0
        with service.redis.paused():
            wait_until(lambda: service.server.metric("tickwire_control_events_cut_off") == 1)
