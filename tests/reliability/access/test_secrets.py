"""A key that is used everywhere is found nowhere afterwards; what strangers send stays a line of the log."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
import redis as redis_client
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from accounts.key_text import API_KEY_LEAD, generate_key, prefix_of
from market.push.keys import issue_ingest_key
from tests.factories import make_account, make_instrument, make_key, make_news, make_user
from tests.patience import PATIENCE_S
from tests.reliability.fixtures import Tell
from tests.reliability.services.processes import Installation, Process, http
from tests.staff import staff_client

from . import traces

pytestmark = [pytest.mark.usefixtures("rows")]
FORGED = "forged.example"


class Used:
    """Secrets that went through every door there is; `answers` are what came back."""

    def __init__(self, installation: Installation, server: Process) -> None:
        self.installation, self.server = installation, server
        with installation.orm():
            make_instrument()
            account = make_account()
            self.key, self.revoked = make_key(account), make_key(account)
            account.keys.filter(prefix=prefix_of(self.revoked)).update(revoked_at="2026-11-18T12:00Z")
            self.ingest = issue_ingest_key("desk", by="test")[1]
        self.unknown = generate_key()
        self.answers: list[tuple[str, bytes]] = []
        for secret in self.secrets:
            self._use(secret)

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.key, self.revoked, self.unknown, self.ingest

    def _use(self, secret: str) -> None:
        for path in ("/api/symbols", "/api/market/EURUSD/quote", "/api/nothing", "/ingest/ticks", "/metrics"):
            for headers in ({"X-API-Key": secret}, {"Authorization": f"Bearer {secret}"}):
                self._keep("header", http.get(f"{self.server.url}{path}", headers=headers).content)
        for path in (
            "/",
            "/api/symbols",
            "/docs",
            "/nothing",
            "/accounts/login/",
            "/admin/",
            "/readyz",
            "/ingest/ticks",
        ):
            for query in (f"?api_key={secret}", f"?key={secret}&x=1", f"?{secret}", f"/{secret}"):
                self._keep("address", http.get(f"{self.server.url}{path}{query}").content, its_own=True)
        http.post(f"{self.server.url}/accounts/login/", data={"login": secret, "password": secret})
        http.post(f"{self.server.url}/page-token", data={"api_key": secret})
        headers = {"X-Ingest-Key": secret}
        self._keep(
            "ticks", http.post(f"{self.server.url}/ingest/ticks", content=b"{", headers=headers).content
        )
        for host in (secret, f"{secret}.example"):
            head = f"GET / HTTP/1.1\r\nHost: {host}\r\nX-API-Key: {secret}\r\n"
            raw(self.server, f"{head}Connection: close\r\n\r\n".encode())
        for path in ("/ws/market", f"/ws/market?api_key={secret}", "/ws/signals", "/ws/ingest"):
            self._speak(path, secret)

    def _speak(self, path: str, secret: str) -> None:
        address = f"ws://127.0.0.1:{self.server.port}{path}"
        with (
            suppress(WebSocketException, OSError, TimeoutError),
            connect(address, open_timeout=PATIENCE_S) as stream,
        ):
            for message in (
                {"action": "subscribe", "symbols": ["EURUSD"], "api_key": secret},
                {"action": "auth", "key": secret},
                {"action": secret},
            ):
                stream.send(json.dumps(message))
                self._keep("socket", str(stream.recv(PATIENCE_S)).encode())

    def _keep(self, where: str, text: bytes, *, its_own: bool = False) -> None:
        # A page may lead back to the address that it was asked at.
        if not its_own:
            self.answers.append((f"answer to a {where}", text))


def raw(server: Process, head: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as line:
        line.sendall(head)
        heard = b""
        with suppress(OSError):
            while more := line.recv(65536):
                heard += more
        return heard


@pytest.fixture(scope="module")
def used(scaled: Installation, django_db_blocker: pytest.FixtureRequest) -> Iterator[Used]:
    with django_db_blocker.unblock(), scaled.serve(1, ACCESS_LOG="1", LOG_LEVEL="DEBUG") as (server,):  # type: ignore[attr-defined]
        yield Used(scaled, server)


def everywhere(used: Used, secret: str) -> list[str]:
    own = secret[len(prefix_of(secret, "tw_ingest_" if secret.startswith("tw_ingest_") else API_KEY_LEAD)) :]
    with used.installation.orm():
        return traces.holding(
            own,
            traces.in_files(used.installation.directory),
            traces.in_database(),
            traces.in_redis(used.installation.redis_url),
            traces.in_processes(used.server.pid),
            iter(used.answers),
        )


@pytest.mark.row("31", "no secret found")
def test_keys_used_everywhere_appear_in_neither_files_nor_logs_nor_tables(used: Used, tell: Tell) -> None:
    found = {prefix_of(secret): everywhere(used, secret) for secret in used.secrets}

    tell(f"{sum(map(len, found.values()))} occurrences of {len(used.secrets)} keys")
    assert {prefix: places for prefix, places in found.items() if places} == {}


@pytest.mark.row("31", "a planted key is found")
def test_control_a_planted_key_is_found_wherever_it_is(used: Used, tell: Tell) -> None:
    planted = generate_key()
    with used.installation.orm():
        make_news(f"The key is {planted}")
    with redis_client.Redis.from_url(used.installation.redis_url) as client:
        client.hset("planted", planted, "x")
    leak = used.installation.directory / "planted.log"
    leak.write_text(planted)

    found = everywhere(used, planted)

    leak.unlink()
    tell(f"found in {len(found)} places")
    assert {name.split()[0] for name in found} >= {"file", "table", "redis"}


@pytest.mark.row("31", "no key found in the back office")
def test_the_back_office_shows_no_key(used: Used, tell: Tell) -> None:
    pages = (
        "/admin/",
        "/admin/accounts/apikey/",
        "/admin/market/ingestkey/",
        "/admin/accounts/controlevent/",
    )
    with used.installation.orm():
        client = staff_client(make_user("boss-of-keys", is_staff=True, is_superuser=True))
        texts = [(page, client.get(page).content) for page in (*pages, "/admin/admin/logentry/")]

    found = [place for secret in used.secrets for place in traces.holding(secret[18:], iter(texts))]
    tell(f"{len(found)} occurrences")
    assert all(len(text) > 1000 for _, text in texts)
    assert found == []


@pytest.mark.row("32", "never accepted, never logged")
def test_a_key_in_a_url_opens_nothing(used: Used, tell: Tell) -> None:
    names = ("api_key", "key", "X-API-Key", "apikey", "token")
    statuses = [http.get(f"{used.server.url}/api/symbols?{name}={used.key}").status_code for name in names]
    log = used.server.log.read_text()

    tell(f"{statuses.count(200)} accepted, {log.count(used.key[16:])} logged")
    # The address of the tests has had enough failures by now.
    assert set(statuses) <= {401, 429}
    assert used.key[16:] not in log


@pytest.mark.row("70", "never reflected")
def test_a_forged_host_is_refused_and_never_reflected(used: Used, tell: Tell) -> None:
    heads = (
        f"GET / HTTP/1.1\r\nHost: {FORGED}\r\n",
        f"GET /accounts/password/reset/ HTTP/1.1\r\nHost: {FORGED}\r\n",
        f"GET http://{FORGED}/ HTTP/1.1\r\nHost: {FORGED}\r\n",
        f"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: {FORGED}\r\n",
        f"GET /settings/keys HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Forwarded-Host: {FORGED}\r\n",
        "GET / HTTP/1.1\r\n",
    )
    answers = [raw(used.server, f"{head}Connection: close\r\n\r\n".encode()) for head in heads]
    reflected = sum(FORGED.encode() in answer for answer in answers)

    tell(f"reflected in {reflected} of {len(answers)} answers")
    assert [answer.split()[1] for answer in answers] == [b"400"] * 4 + [b"302", b"400"]
    assert reflected == 0


@pytest.mark.row("72", "no extra line")
def test_requests_cannot_forge_a_log_line(used: Used, tell: Tell) -> None:
    def lines() -> list[str]:
        return used.server.log.read_text().splitlines()

    before = len(lines())
    forged = "2026-11-22T00:00:00Z [info] forged"
    end = "HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    coded = forged.replace(" ", "%20")
    long = "/api/" + "x" * 20_000
    for path in (f"/api/x%0a{coded}", f"/api/%1b[2J{coded}", f"/nothing%0d%0a{coded}", long):
        raw(used.server, f"GET {path} {end}".encode())
    raw(used.server, f"GET / HTTP/1.1\r\nHost: evil\x0b{forged}\r\nConnection: close\r\n\r\n".encode())
    written = lines()[before:]

    extra = [line for line in written if line.startswith(forged[:10]) and "forged" in line.split("]")[1][:9]]
    tell(f"{len(extra)} extra lines; the longest has {max(map(len, written), default=0)} characters")
    assert extra == []
    assert "\x1b" not in "".join(written)
    assert max(map(len, written), default=0) < 6_000
    assert "Traceback" not in "".join(written)
