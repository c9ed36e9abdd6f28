"""The proxies as they are shipped, in front of two real web processes.

The tests run in this order: the later ones end processes that the earlier ones need."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import pytest
from pytest_django.fixtures import Settings

from accounts.limits.throttling import FAILURES_PER_MINUTE
from operations.doctor.diagnosis import OK
from operations.doctor.proxy import check_proxy
from serving.http.bounds import MOST_BODY_BYTES, MOST_TICK_BYTES
from tests.patience import wait_until
from tests.programs.debian import require_debian

from .installation import DRAIN_S, HOST, QUIET, SYMBOL, Pair, pair
from .proxies import CONNECTIONS, IDLE_S, PROGRAMS, Load, LoopThread, Proxy, Stream, Visitor, started

STREAMS, RESTARTING = 4, 1012
each_proxy = pytest.mark.parametrize("name", PROGRAMS)


class Fronts:
    def __init__(self, pair: Pair, proxies: dict[str, Proxy]) -> None:
        self.pair, self.proxies = pair, proxies
        self.idle: dict[str, Stream] = {}
        """A stream over each on which nothing happens."""
        self.idle_since_s = 0.0
        self._loop = LoopThread()
        self._visitors: dict[tuple[str, str], Visitor] = {}

    def visitor(self, name: str, address: str = "127.0.0.1") -> Visitor:
        found = self._visitors.get((name, address))
        if found is None:
            found = self._visitors[name, address] = Visitor(self.proxies[name], self._loop, address)
        return found

    def close(self) -> None:
        for visitor in self._visitors.values():
            visitor.client.close()
        self._loop.stop()


@pytest.fixture(scope="module")
def fronts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronts]:
    directory = tmp_path_factory.mktemp("deploy")
    with ExitStack() as running:
        both = running.enter_context(pair(directory))
        proxies = {
            name: running.enter_context(started(name, directory / name, both.ports)) for name in PROGRAMS
        }
        found = Fronts(both, proxies)
        running.callback(found.close)
        for name in PROGRAMS:
            visitor = found.visitor(name)
            wait_until(lambda visitor=visitor: visitor.ask("/readyz").status_code == 200)  # type: ignore[misc]
            assert visitor.push(both.ingest_key, 60_000.0).json()["accepted"] == 1
            found.idle[name] = running.enter_context(visitor.stream("/ws/market", both.key, QUIET))
        found.idle_since_s = time.monotonic()
        yield found


@each_proxy
def test_the_doctor_finds_no_fault(
    fronts: Fronts, name: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = fronts.proxies[name]
    settings.SECRET_KEY, settings.ALLOWED_HOSTS, settings.PRODUCTION = fronts.pair.secret, [HOST], True
    # As if somebody known had signed it.
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy.certificate))
    address = urlsplit(f"https://{HOST}:{proxy.https}")

    found = list(check_proxy(address, is_named=True, silence_s=1))

    assert [each.says for each in found if each.level != OK] == []
    assert len(found) == 9


@each_proxy
def test_quote_comes_with_its_limits(fronts: Fronts, name: str) -> None:
    visitor = fronts.visitor(name)
    headers = {"X-API-Key": fronts.pair.key}
    # A push is acknowledged by the engine, and heard by the web processes a moment later.
    wait_until(lambda: visitor.ask(f"/api/market/{SYMBOL}/quote", headers=headers).status_code == 200)
    answer = visitor.ask(f"/api/market/{SYMBOL}/quote", headers=headers)

    assert answer.json()["symbol"] == SYMBOL
    assert int(answer.headers["X-RateLimit-Remaining"]) > 0


@each_proxy
def test_whoever_forges_an_address_is_counted_under_their_own(fronts: Fronts, name: str) -> None:
    # The service would believe this address, if the proxy handed on what it says.
    forger = fronts.visitor(name, f"127.0.1.{list(PROGRAMS).index(name) + 1}")
    statuses = set()
    for number in range(FAILURES_PER_MINUTE + 10):
        forged = {"X-API-Key": "none", "X-Forwarded-For": f"203.0.113.{number}", "X-Real-IP": "203.0.113.1"}
        statuses.add(forger.ask("/api/symbols", headers=forged).status_code)
    somebody_else = fronts.visitor(name, "127.0.1.9").ask("/api/symbols", headers={"X-API-Key": "none"})

    assert statuses == {401, 429}
    assert somebody_else.status_code == 401


@each_proxy
def test_page_without_tls_is_redirected_and_a_key_is_refused(fronts: Fronts, name: str) -> None:
    answer = fronts.visitor(name).ask("/docs/api?from=mail", plain=True)
    assert answer.status_code == 308
    assert answer.headers["Location"] == f"https://{HOST}/docs/api?from=mail"
    forged = {"X-API-Key": fronts.pair.key, "X-Forwarded-Proto": "https"}
    answer = fronts.visitor(name).ask("/api/symbols", plain=True, headers=forged)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "https_required")


@each_proxy
def test_page_has_each_header_once_and_its_files_come_compressed_by_the_service(
    fronts: Fronts, name: str
) -> None:
    visitor = fronts.visitor(name)
    answer = visitor.ask("/accounts/login/")
    sent = [header.lower() for header, _ in answer.headers.multi_items()]
    assert answer.status_code == 200
    assert "max-age" in answer.headers["Strict-Transport-Security"]
    assert "default-src" in answer.headers["Content-Security-Policy"]
    assert sorted(set(sent) - {"set-cookie"}) == sorted(header for header in sent if header != "set-cookie")

    parts = answer.text.split('"')
    path = next(part for part in parts if part.startswith("/static/") and part.endswith(".css"))
    file = visitor.ask(path, headers={"Accept-Encoding": "gzip"})
    assert file.headers["Content-Encoding"] == "gzip"
    assert "immutable" in file.headers["Cache-Control"]


@each_proxy
@pytest.mark.parametrize(
    ("path", "size", "status"),
    [
        ("/api/symbols", 10_000_000, 413),
        ("/accounts/login/", MOST_BODY_BYTES + 1, 413),
        ("/ingest/ticks", MOST_TICK_BYTES + 1, 413),
        # The largest is passed on, and is no tick.
        ("/ingest/ticks", MOST_TICK_BYTES, 400),
    ],
)
def test_body_that_is_too_large_is_refused(
    fronts: Fronts, name: str, path: str, size: int, status: int
) -> None:
    headers = {"X-Ingest-Key": fronts.pair.ingest_key}
    answer = fronts.visitor(name).ask(path, "POST", content=b" " * size, headers=headers)
    assert answer.status_code == status
    assert status == 400 or answer.json()["error"]["code"] == "too_large"


@each_proxy
def test_metrics_are_not_public_and_probes_answer(fronts: Fronts, name: str) -> None:
    bearer = {"Authorization": "Bearer only-for-tests"}
    for path in ("/metrics", "/%6detrics"):
        answer = fronts.visitor(name).ask(path, headers=bearer)
        assert (answer.status_code, "tickwire_" in answer.text) == (404, False)
    for path in ("/healthz", "/readyz"):
        assert fronts.visitor(name).ask(path).status_code == 200
    # Without the proxy they are there.
    url, own = (
        f"http://127.0.0.1:{fronts.pair.first.port}/metrics",
        {"X-Forwarded-Proto": "https", "Host": HOST},
    )
    assert "tickwire_" in httpx.get(url, headers=bearer | own).text


@each_proxy
def test_another_name_is_served_by_nobody(fronts: Fronts, name: str) -> None:
    try:
        answer = fronts.visitor(name).ask("/accounts/login/", headers={"Host": "evil.example"})
    except httpx.RemoteProtocolError:
        return
    assert answer.status_code in (400, 421) or (answer.status_code, answer.content) == (200, b"")


@each_proxy
def test_http2_is_spoken(fronts: Fronts, name: str) -> None:
    proxy = fronts.proxies[name]
    command = [require_debian("curl"), "--silent", "--http2", "--cacert", str(proxy.certificate)]
    command += ["--resolve", f"{HOST}:{proxy.https}:127.0.0.1", "--output", "/dev/null"]
    command += ["--write-out", "%{http_version} %{http_code}", f"https://{HOST}:{proxy.https}/readyz"]

    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == "2 200"


@each_proxy
@pytest.mark.parametrize("path", ["/ws/market", "/ws/orderflow"])
def test_stream_gets_ticks(fronts: Fronts, name: str, path: str) -> None:
    visitor = fronts.visitor(name)
    with visitor.stream(path, fronts.pair.key, SYMBOL) as stream:
        tick = {"symbol": SYMBOL, "bid": 60_000.0, "ask": 60_001.0, "side": "buy", "volume": 0.5}
        headers = {"X-Ingest-Key": fronts.pair.ingest_key}
        visitor.ask("/ingest/ticks", "POST", json=tick, headers=headers)
        assert stream.hear()["symbol"] == SYMBOL


@pytest.mark.parametrize("name", ["nginx", "haproxy"])
def test_address_has_so_many_connections_and_others_have_theirs(fronts: Fronts, name: str) -> None:
    crowd = fronts.visitor(name, f"127.0.2.{list(PROGRAMS).index(name) + 1}")
    with ExitStack() as streams:
        for _ in range(CONNECTIONS):
            streams.enter_context(crowd.stream("/ws/market", fronts.pair.key, QUIET))
        refused = "closed" if crowd.is_hung_up() else str(crowd.ask("/healthz").status_code)
        assert refused == {"nginx": "429", "haproxy": "closed"}[name]
        assert fronts.visitor(name, "127.0.2.9").ask("/healthz").status_code == 200


@each_proxy
def test_idle_stream_outlives_the_time_outs(fronts: Fronts, name: str) -> None:
    stream = fronts.idle[name]
    left_s = fronts.idle_since_s + 1.2 * IDLE_S - time.monotonic()
    if left_s > 0:
        with pytest.raises(TimeoutError):
            stream.hear(left_s)
    fronts.visitor(name).push(fronts.pair.ingest_key, 3_000.0, QUIET)

    assert stream.hear()["symbol"] == QUIET


def test_draining_process_fails_no_request_and_moves_its_streams(fronts: Fronts) -> None:
    with ExitStack() as loaded:
        streams = {
            name: [
                loaded.enter_context(fronts.visitor(name).stream("/ws/market", fronts.pair.key, QUIET))
                for _ in range(STREAMS)
            ]
            for name in PROGRAMS
        }
        loads = {
            name: loaded.enter_context(
                Load((fronts.visitor(name, "127.0.3.1"), fronts.visitor(name, "127.0.3.2")), fronts.pair)
            )
            for name in PROGRAMS
        }
        wait_until(lambda: all(load.seen.total() > 20 for load in loads.values()))
        began_s = time.monotonic()
        code = fronts.pair.first.terminate()
        took_s = time.monotonic() - began_s
        # The port is shut: only what goes to the other is answered.
        counts = {name: load.seen.total() for name, load in loads.items()}
        wait_until(lambda: all(load.seen.total() > counts[name] + 20 for name, load in loads.items()))
        wait_until(lambda: all(any(stream.close_code for stream in each) for each in streams.values()))
        codes = {name: {stream.close_code for stream in each} for name, each in streams.items()}

    assert {name: set(load.seen) for name, load in loads.items()} == dict.fromkeys(
        PROGRAMS, {"GET 200", "POST 200"}
    )
    # Each proxy had streams at both processes, and those of the other went on.
    assert codes == dict.fromkeys(PROGRAMS, {None, RESTARTING})
    assert code in (0, -signal.SIGTERM)
    assert took_s >= DRAIN_S


@each_proxy
def test_no_secret_reaches_the_log_of_a_proxy(fronts: Fronts, name: str) -> None:
    link = "/accounts/password/reset/key/1-canary-in-a-link/"
    fronts.visitor(name).ask(f"{link}?api_key=canary-in-a-query")

    assert "canary" not in fronts.proxies[name].logs
    assert fronts.pair.key not in fronts.proxies[name].logs


def test_others_serve_while_a_killed_process_is_away(fronts: Fronts) -> None:
    fronts.pair.first.start()
    fronts.pair.first.wait_until_ready()
    fronts.pair.second.kill()
    headers = {"X-API-Key": fronts.pair.key}
    for name in PROGRAMS:
        visitor = fronts.visitor(name)
        # The one that came back is used again once its proxy has noticed.
        wait_until(lambda visitor=visitor: visitor.ask("/readyz").status_code == 200)  # type: ignore[misc]
        answers = [visitor.ask("/api/symbols", headers=headers).status_code for _ in range(20)]
        assert answers == [200] * 20


@each_proxy
def test_without_any_process_it_says_when_to_try_again(fronts: Fronts, name: str) -> None:
    fronts.pair.first.kill()
    answer = fronts.visitor(name).ask("/api/symbols", headers={"X-API-Key": fronts.pair.key})

    error = answer.json()["error"]
    assert (error["code"], error["status"]) == ("overloaded", answer.status_code)
    assert answer.status_code in (502, 503)
    assert int(answer.headers["Retry-After"]) > 0
    assert fronts.pair.key not in fronts.proxies[name].logs
