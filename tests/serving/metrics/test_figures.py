"""Requests are counted and timed by the template of their route, the figures of several workers become those
of one service, and docs/metrics.md names every metric."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from prometheus_client import REGISTRY, CollectorRegistry
from pytest_django.fixtures import Settings

from archive.journal import TickJournal, TickJournalWriter
from archive.keeper import keeper
from core.version import VERSION
from market.management.commands.run_engine import engine_health
from serving.metrics.collection import EndedWorkers, LinkedWorker, SupervisorMetrics, add_up, ask_all
from serving.metrics.http_requests import BOUNDS_S, MOST_ROUTES, HttpRequests, http_requests, template_of
from serving.metrics.worker_link import SHARED, Family, Sample, Snapshot, families, text_of
from tests.client import Server
from tests.patience import PATIENCE_S

NAME = "tickwire_http_request_seconds"


def read(requests: HttpRequests) -> Callable[..., float | None]:
    registry = CollectorRegistry()
    registry.register(requests)

    def value(suffix: str, **labels: str) -> float | None:
        return registry.get_sample_value(NAME + suffix, labels)

    return value


def test_request_is_counted_in_its_bucket_and_all_above() -> None:
    requests = HttpRequests()
    requests.note("/api/symbols", "GET", 200, 0.02)
    requests.note("/api/symbols", "GET", 204, 0.3)
    # Exactly at a bound is within it.
    requests.note("/", "GET", 200, BOUNDS_S[3])
    for method in ("BREW", "PROPFIND"):
        requests.note("/api", method, 405, 0.001)

    value, labels = read(requests), {"route": "/api/symbols", "method": "GET", "status": "2xx"}
    counts = {le: value("_bucket", le=le, **labels) for le in ("0.01", "0.025", "0.25", "0.5", "+Inf")}
    assert counts == {"0.01": 0, "0.025": 1, "0.25": 1, "0.5": 2, "+Inf": 2}
    assert (value("_count", **labels), value("_sum", **labels)) == (2, 0.32)
    assert value("_bucket", route="/", method="GET", status="2xx", le=str(BOUNDS_S[3])) == 1
    assert value("_count", route="/api", method="other", status="4xx") == 2


def test_labels_are_bounded_whatever_names_a_route() -> None:
    requests = HttpRequests()
    for number in range(10 * MOST_ROUTES):
        requests.note(f"/{number}", "GET", 200, 0.001)
    (family,) = requests.collect()
    assert len({sample.labels["route"] for sample in family.samples}) <= 7 * MOST_ROUTES + 1


@pytest.mark.parametrize(
    ("route", "template"),
    [
        ("", "/"),
        ("^settings/keys/?$", "/settings/keys"),
        ("api/market/(?P<symbol>[^/]+)/quote/?$", "/api/market/{symbol}/quote"),
        ("^api(/|$)", "/api"),
        ("demo-login/<str:token>", "/demo-login/{token}"),
        (
            "accounts/password/reset/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
            "/accounts/password/reset/key/{uidb36}-{key}",
        ),
        ("admin/accounts/apikey/<path:object_id>/change/", "/admin"),
    ],
)
def test_template_is_what_people_write(route: str, template: str) -> None:
    assert template_of(route) == template


@pytest.mark.parametrize(
    ("method", "path", "route", "status"),
    [
        ("OPTIONS", "/api/market/EURUSD/quote", "/api/market/{symbol}/quote", "2xx"),
        ("GET", "/api/market/NOTHING/quote", "/api/market/{symbol}/quote", "4xx"),
        ("GET", "/api/nothing", "/api", "4xx"),
        ("GET", "/api/a%2Fb", "/api", "4xx"),
        ("GET", "/docs/computed", "/docs/computed", "2xx"),
        ("GET", "/static/nothing.css", "/static", "4xx"),
        ("GET", "/nothing/here", "nowhere", "4xx"),
        ("GET", "/admin/accounts/apikey/", "/admin", "3xx"),
    ],
)
def test_request_is_counted_by_template_and_probes_are_not(
    server: Server, method: str, path: str, route: str, status: str
) -> None:
    def counts() -> tuple[float, float]:
        (family,) = http_requests.collect()
        every = sum(sample.value for sample in family.samples if sample.name.endswith("_count"))
        return every, read(http_requests)("_count", route=route, method=method, status=status) or 0.0

    everything, before = counts()
    httpx.request(method, f"{server.url}{path}", timeout=PATIENCE_S)
    for probe in ("/healthz", "/readyz"):
        httpx.get(f"{server.url}{probe}", timeout=PATIENCE_S)
    assert counts() == (everything + 1, before + 1)


def test_time_of_a_request_is_that_since_it_began(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = {"route": "/api", "method": "GET", "status": "4xx"}
    before = read(http_requests)("_sum", **labels) or 0.0
    monkeypatch.setattr("serving.api_handler.started_at", lambda scope: 1_000.0)
    monkeypatch.setattr("serving.api_handler.time", SimpleNamespace(perf_counter=lambda: 1_000.25))
    httpx.get(f"{server.url}/api/nothing", timeout=PATIENCE_S)
    assert read(http_requests)("_sum", **labels) == pytest.approx(before + 0.25)


def make_snapshot(
    *families: Family, shared: float | None = None, shared_at: float = 0.0, requests: float | None = None
) -> Snapshot:
    own = list(families)
    if requests is not None:
        own.append(make_family("tickwire_requests", "counter", ("tickwire_requests_total", {}, requests)))
    engine = [] if shared is None else [make_family("tickwire_ticks", "counter", ("ticks_total", {}, shared))]
    return Snapshot(own, engine, shared_at)


def make_family(name: str, kind: str, *samples: tuple[str, dict[str, str], float]) -> Family:
    return Family(name, "What it says.", kind, [Sample(*each) for each in samples])


def seen(*running: Snapshot, ended: EndedWorkers | None = None, silent: tuple[Snapshot, ...] = ()) -> str:
    numbered = {str(number): each for number, each in enumerate(running, 1)}
    text = text_of(add_up(ended or EndedWorkers(), [*running, *silent], numbered)).decode()
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def test_counters_are_added_up_with_those_of_workers_that_have_ended_or_do_not_answer() -> None:
    ended = EndedWorkers()
    ended.note(make_snapshot(requests=3))
    ended.note(make_snapshot(requests=5))

    for running, silent, total in (((3, 4), (), 15), ((1,), (6,), 15), ((2,), (), 10), ((), (), 8)):
        each = [make_snapshot(requests=count) for count in running]
        said_last = tuple(make_snapshot(requests=count) for count in silent)
        assert seen(*each, ended=ended, silent=said_last) == f"tickwire_requests_total {total}.0"


def test_histograms_are_added_up_bucket_by_bucket() -> None:
    def make_histogram(fast: float, all_: float, sum_s: float) -> Snapshot:
        samples: tuple[tuple[str, dict[str, str], float], ...] = (
            ("s_bucket", {"le": "0.1"}, fast),
            ("s_bucket", {"le": "+Inf"}, all_),
            ("s_sum", {}, sum_s),
        )
        return make_snapshot(make_family("s", "histogram", *samples))

    assert seen(make_histogram(1, 2, 0.5), make_histogram(4, 6, 0.25)).splitlines() == [
        's_bucket{le="0.1"} 5.0',
        's_bucket{le="+Inf"} 8.0',
        "s_sum 0.75",
    ]


def test_gauge_keeps_one_value_for_each_worker_but_open_sockets_are_added_up() -> None:
    ready = [make_snapshot(make_family("ready", "gauge", ("ready", {}, value))) for value in (1, 0)]
    assert seen(*ready).splitlines() == ['ready{worker="1"} 1.0', 'ready{worker="2"} 0.0']

    name, ended = "tickwire_stream_connections", EndedWorkers()
    one = make_snapshot(make_family(name, "gauge", (name, {"stream": "market"}, 3)))
    ended.note(one)
    assert seen(one, one, ended=ended) == name + '{stream="market"} 6.0'


def test_quantile_is_the_worst_and_none_of_an_ended_worker_stays() -> None:
    def make_latency(p95: float, count: float) -> Snapshot:
        return make_snapshot(
            make_family("late", "summary", ("late", {"quantile": "0.95"}, p95), ("late_count", {}, count))
        )

    ended = EndedWorkers()
    ended.note(make_latency(9.0, 10))

    assert seen(make_latency(0.01, 1), make_latency(0.03, 2), ended=ended).splitlines() == [
        "late_count 13.0",
        'late{quantile="0.95"} 0.03',
    ]


def test_what_the_engine_told_all_is_taken_from_who_heard_it_last() -> None:
    cut_off = make_snapshot(shared=900, shared_at=10.0)
    hears = make_snapshot(shared=40, shared_at=20.0)

    assert seen(cut_off, hears) == seen(hears, cut_off) == "ticks_total 40.0"


DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"
ENDINGS = {"counter": "_total", "info": "_info"}


def documented() -> set[str]:
    return set(re.findall(r"^\| `(tickwire_\w+)`", DOCS.read_text(), re.MULTILINE))


def exported() -> set[str]:
    found: list[Family] = []
    for registry in (REGISTRY, SHARED, SupervisorMetrics().registry, engine_health.registry):
        found += families(registry)
    ours = (family for family in found if family.name.startswith("tickwire_"))
    return {family.name + ENDINGS.get(family.kind, "") for family in ours}


@pytest.mark.django_db
def test_documentation_names_every_metric_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.METRICS_PER_SYMBOL = True
    # An engine that keeps its ticks.
    monkeypatch.setattr(keeper, "writer", TickJournalWriter(TickJournal(tmp_path), "bid", {}, 0))
    found, told = exported(), documented()
    assert len(found) > 30
    assert found == told
    assert REGISTRY.get_sample_value("tickwire_version", {"version": VERSION}) == 1


WORD = Snapshot([])
SOON_S = 0.001


@pytest.fixture
async def writer() -> AsyncIterator[asyncio.StreamWriter]:
    """Nobody answers at the other end."""
    ours, theirs = socket.socketpair()
    _, writer = await asyncio.open_unix_connection(sock=ours)
    with theirs:
        yield writer
    writer.close()
    await writer.wait_closed()


def make_worker(writer: asyncio.StreamWriter, number: int, *, is_started: bool = True) -> LinkedWorker:
    worker = LinkedWorker(number, writer)
    if is_started:
        worker.hear(WORD)
    return worker


async def test_worker_that_hangs_is_silent_and_the_others_are_told(writer: asyncio.StreamWriter) -> None:
    hanging, answering = make_worker(writer, 1), make_worker(writer, 2)
    # What was said before it was asked is no answer.
    asked = asyncio.create_task(ask_all([hanging, answering], SOON_S))
    await asyncio.sleep(0)
    answering.hear(WORD)
    assert await asked == ({"2": WORD}, ["1"])


async def test_nobody_waits_for_a_worker_that_starts_or_has_ended(writer: asyncio.StreamWriter) -> None:
    links = [make_worker(writer, 2, is_started=False), make_worker(writer, 1)]
    asked = asyncio.create_task(ask_all(links, None))
    await asyncio.sleep(0)
    links.pop().end()
    async with asyncio.timeout(PATIENCE_S):
        assert await asked == ({}, [])


async def test_who_asks_meanwhile_shares_the_answer(writer: asyncio.StreamWriter) -> None:
    hanging, answering = make_worker(writer, 1), make_worker(writer, 2)
    first = asyncio.create_task(ask_all([hanging, answering], None))
    await asyncio.sleep(0)
    answering.hear(WORD)
    second = asyncio.create_task(ask_all([hanging], None))
    await asyncio.sleep(0)
    answering.ask()
    hanging.hear(WORD)
    assert await first == ({"1": WORD, "2": WORD}, [])
    assert await second == ({"1": WORD}, [])
