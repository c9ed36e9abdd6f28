"""Each kind of secret goes through a service in production, while all is well and while nothing is, and is
found nowhere afterwards. Nor has the log a link out of a mail, which lets somebody in."""

from __future__ import annotations

import itertools
import json
import re
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from django.db import connection
from django.test import override_settings
from redis import Redis
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from accounts.key_text import generate_key
from market.push.keys import issue_ingest_key
from tests.factories import make_account, make_instrument, make_key, make_news
from tests.patience import PATIENCE_S, wait_until
from tests.programs import services
from tests.programs.mail_server import MailServer, mail_server
from tests.reliability.fixtures import Tell
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation, Process

HOST = "tickwire.example"
HTTPS = {"Host": HOST, "X-Forwarded-Proto": "https"}
# The part of a key that is no public prefix.
OWN_PART = 16
INGEST_LEAD, PUBLIC, PLANTED = "tw_ingest_", "not-a-secret-at-all", "planted"
SENT = ("password", "session", "csrf", "totp", "reset", "confirm", "login", "bearer", "query")
PASSWORD = "a long walk 7"
LINK = re.compile(r"/(?:confirm-email|reset/key)/([^/]+)/")


def canary() -> str:
    return secrets.token_urlsafe(36)


class Service:
    """`canaries` are what must not be seen, by its kind; `answers` what came back."""

    def __init__(self, installation: Installation, server: Process, canaries: dict[str, str]) -> None:
        self.installation, self.server, self.canaries = installation, server, canaries
        self.answers: list[bytes] = []
        self.places: dict[str, list[str]] = {}
        self._strangers = itertools.cycle(range(1, 255))

    def ask(self, path: str, method: str = "GET", **more: Any) -> httpx.Response:
        # Each from elsewhere, because of one stranger only a few lines are written.
        address = {"X-Forwarded-For": f"203.0.113.{next(self._strangers)}"}
        headers = HTTPS | address | more.pop("headers", {})
        return httpx.request(method, f"{self.server.url}{path}", headers=headers, timeout=PATIENCE_S, **more)

    def send_everything(self, *keys: str) -> None:
        sent = self.canaries
        for key in keys:
            self.send_key(key)
        self.open_pages(
            *("/", "/admin/", "/settings/keys", f"/docs?token={sent['query']}"),
            f"/api/symbols?api_key={sent['query']}&secret={sent['totp']}",
            f"/accounts/2fa/totp/activate/?secret={sent['totp']}",
            f"/accounts/password/reset/key/1a-{sent['reset']}/",
            *(f"/accounts/confirm-email/{sent['confirm']}/", f"/demo-login/{sent['login']}", f"/{PUBLIC}"),
        )
        body = {"login": "x", "username": "y", "email": "y@example.com", "password": sent["password"]}
        body |= {"password1": sent["password"], "password2": sent["password"], "secret": sent["totp"]}
        for path in ("/accounts/login/", "/accounts/signup/", "/accounts/password/reset/"):
            # With a token that fits its cookie, and with one that does not.
            fits = {"Cookie": f"csrftoken={'a' * 32}", "Referer": f"https://{HOST}/"}
            self.ask(path, "POST", data=body | {"csrfmiddlewaretoken": "a" * 32}, headers=fits)
            self.ask(path, "POST", data=body, headers=self._cookies)

    @property
    def _cookies(self) -> dict[str, str]:
        return {"Cookie": f"sessionid={self.canaries['session']}; csrftoken={self.canaries['csrf']}"}

    def open_pages(self, *paths: str) -> None:
        for path in paths:
            self.ask(path, headers=self._cookies | {"Authorization": f"Bearer {self.canaries['bearer']}"})

    def send_key(self, key: str) -> None:
        for path in ("/api/symbols", "/api/nothing", "/metrics", f"/docs?api_key={key}", f"/{key}"):
            for headers in ({"X-API-Key": key}, {"Authorization": f"Bearer {key}"}, {"X-Ingest-Key": key}):
                answer = self.ask(path, headers=headers)
                # A page may lead back to the address that it was asked at.
                self.answers += [] if key in path else [answer.content]
        body, headers = f'{{"key": "{key}"}}', {"X-Ingest-Key": key}
        self.answers.append(self.ask("/ingest/ticks", "POST", content=body, headers=headers).content)
        for path in ("/ws/market", f"/ws/signals?api_key={key}", "/ws/ingest"):
            line = socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE_S)
            with (
                suppress(WebSocketException, OSError, TimeoutError),
                connect(f"ws://{HOST}{path}", sock=line, proxy=None, open_timeout=PATIENCE_S) as stream,
            ):
                for message in ({"action": "list", "api_key": key}, {"action": "auth", "key": key}):
                    stream.send(json.dumps(message))
                    self.answers.append(str(stream.recv(PATIENCE_S)).encode())

    def look_everywhere(self) -> None:
        """For each canary, and one that was left on purpose wherever one could be."""
        directory, url = self.installation.directory, self.installation.redis_url
        planted = self.canaries[PLANTED] = canary()
        (directory / "planted.log").write_text(planted)
        with self.installation.orm(), Redis.from_url(url) as client:
            make_news(f"The key is {planted}")
            client.hset("planted", planted, "x")
            traces = [*in_files(directory), *in_database(), *in_redis(client)]
        traces.append(("ps", Path(f"/proc/{self.server.pid}/cmdline").read_bytes()))
        traces += [("answer", answer) for answer in self.answers]
        self.places = holding(self.canaries, traces)


def in_files(directory: Path) -> Iterator[tuple[str, bytes]]:
    """Logs, the database, and whatever else a process wrote."""
    for path in directory.rglob("*"):
        if path.is_file():
            yield f"file {path.name}", path.read_bytes()


def in_database() -> Iterator[tuple[str, bytes]]:
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - the name of a table
            yield f"table {table}", "\n".join(map(repr, cursor.fetchall())).encode()


def in_redis(client: Any) -> Iterator[tuple[str, bytes]]:
    """Every key and value, as Redis itself would dump them."""
    for key in client.scan_iter():
        yield f"redis {key!r}", key + (client.dump(key) or b"")


def holding(wanted: Mapping[str, str], traces: list[tuple[str, bytes]]) -> dict[str, list[str]]:
    found = {
        kind: [name for name, text in traces if secret.encode() in text] for kind, secret in wanted.items()
    }
    return {kind: places for kind, places in found.items() if places}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("canaries")
    database = PrivatePostgres(directory)
    given = {name: canary() for name in ("SECRET_KEY", "KEY_PEPPER", "OANDA_TOKEN", "ANTHROPIC_API_KEY")}
    # As short as people make them.
    given |= {"METRICS_TOKEN": secrets.token_hex(4), "OPENAI_API_KEY": f"sk-{secrets.token_hex(4)}"}
    hidden = given | {name: canary() for name in ("database", "redis", "mail", *SENT)}
    with ExitStack() as servers:
        servers.enter_context(database.running())
        redis = servers.enter_context(services.redis(directory))
        with Redis.from_url(redis) as client:
            client.config_set("requirepass", hidden["redis"])
        installation = Installation(
            directory,
            database.url.replace("postgres@", f"postgres:{hidden['database']}@"),
            redis.replace("://", f"://:{hidden['redis']}@"),
        )
        with override_settings(KEY_PEPPER=given["KEY_PEPPER"]), installation.orm():
            make_instrument()
            keys = [make_key(make_account()), generate_key(), issue_ingest_key("desk", by="test")[1]]
        keys.append(generate_key(INGEST_LEAD))
        hidden |= {f"key {number}": key[OWN_PART:] for number, key in enumerate(keys)}
        given |= {
            **{"PRODUCTION": "1", "ALLOWED_HOSTS": HOST, "TRUSTED_PROXIES": "127.0.0.1"},
            "EMAIL_URL": f"smtp://user:{hidden['mail']}@127.0.0.1:1",
            **{"LOG_LEVEL": "DEBUG", "ACCESS_LOG": "1"},
            # Nothing answers that it would wait for.
            "STOP_WITHIN_S": "2",
        }
        with installation.web_process(0, **given) as server:
            service = Service(installation, server, hidden)
            assert service.ask("/api/symbols", headers={"X-API-Key": keys[0]}).status_code == 200
            service.send_everything(*keys)
            service.look_everywhere()
            # Now nothing answers that the service needs.
            servers.close()
            wait_until(lambda: "Not in order" in server.log.read_text())
            service.send_key(keys[0])
            service.open_pages(f"/docs?token={hidden['query']}", "/settings/keys")
            yield service


@pytest.mark.row("31, canaries", "no secret in files, tables, Redis, processes or answers")
def test_secrets_used_everywhere_appear_nowhere(service: Service, tell: Tell) -> None:
    found = {kind: places for kind, places in service.places.items() if kind != PLANTED}
    tell(f"{sum(map(len, found.values()))} occurrences of {len(service.canaries) - 1} secrets")
    assert found == {}


@pytest.mark.row("31, canaries", "a planted secret is found")
def test_control_a_planted_secret_is_found_wherever_it_is(service: Service, tell: Tell) -> None:
    found = service.places[PLANTED]
    tell(f"found in {len(found)} places")
    assert {name.split()[0] for name in found} >= {"file", "table", "redis"}


@pytest.mark.row("31, canaries", "no secret in log lines, whatever fails")
def test_no_log_line_contains_a_secret(service: Service) -> None:
    log = service.server.log.read_text()
    assert holding(service.canaries, [("log", log.encode())]) == {}
    for what in (f"/{PUBLIC}", "invalid_api_key", '"status":503', "/ws/market closed with 4401", "tw_live_"):
        assert what in log, what
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert len(lines) > 50
    assert all({"timestamp", "level", "logger", "event"} <= set(line) for line in lines)


@pytest.mark.row("31, canaries", "probes answer every host, and write no line")
@pytest.mark.parametrize("path", ["/livez", "/healthz"])
@pytest.mark.parametrize(
    "head",
    [
        "HTTP/1.0\r\n\r\n",
        "HTTP/1.1\r\nConnection: close\r\n\r\n",
        "HTTP/1.1\r\nHost: somebody.else\r\nX-Forwarded-Proto: http\r\nConnection: close\r\n\r\n",
    ],
    ids=["no host", "1.1 without host", "another host"],
)
def test_probes_answer_any_host_while_everything_else_fails(service: Service, path: str, head: str) -> None:
    with socket.create_connection(("127.0.0.1", service.server.port), timeout=PATIENCE_S) as line:
        line.sendall(f"GET {path} {head}".encode())
        answer = line.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"location:" not in answer.lower()
    assert f'"{path}"' not in service.server.log.read_text()


def submit(browser: httpx.Client, path: str, **fields: str) -> None:
    browser.get(path)
    browser.post(path, data=fields | {"csrfmiddlewaretoken": browser.cookies["csrftoken"]})


def ask_for_links(server: Process, mails: MailServer, name: str) -> list[str]:
    """One that confirms an address and one that resets a password."""
    address = {"email": f"{name}@example.com"}
    before = len(mails.links)
    with httpx.Client(base_url=server.url, follow_redirects=True, timeout=PATIENCE_S) as browser:
        passwords = {"password1": PASSWORD, "password2": PASSWORD}
        submit(browser, "/accounts/signup/", username=name, **address, **passwords)
        submit(browser, "/accounts/logout/")
        submit(browser, "/accounts/password/reset/", **address)
        wait_until(lambda: len(mails.links) >= before + 2)
        return mails.links[before:]


def use(server: Process, link: str) -> None:
    path = link.partition(f":{server.port}")[2]
    with httpx.Client(base_url=server.url, follow_redirects=True, timeout=PATIENCE_S) as browser:
        browser.get(f"{path[:-2]}x/")
        browser.get(f"/accounts/login/?next={path}", headers={"Referer": link})
        browser.get(f"/nothing?link={link}", headers={"Referer": link})
        browser.get(f"/nothing/{quote(path, safe='')}", headers={"Referer": quote(link, safe="")})
        browser.get(path, headers={"Host": "elsewhere.example"})
        browser.put(path)
        browser.get(path)


@pytest.mark.row("31", "no mailed link in the log")
def test_no_mailed_link_appears_in_the_log(embedded: Installation, tell: Tell) -> None:
    with (
        mail_server() as mails,
        embedded.serve(1, ACCESS_LOG="1", LOG_LEVEL="DEBUG", EMAIL_URL=mails.url) as (server,),
    ):
        links = ask_for_links(server, mails, "ada")
        for link in links:
            use(server, link)
        mails.refuses = True
        links += ask_for_links(server, mails, "eve")
        wait_until(lambda: server.log.read_text().count("No mail was sent") == 2)
    log = server.log.read_text()
    found = {secret for link in links for secret in LINK.findall(link)}
    tell(f"{sum(secret in log for secret in found)} of {len(found)} links in {len(log)} characters of log")
    assert len(found) == 4
    # What the mail server answered is there, without the link.
    assert "refused for what it holds" in log
    parts = {part for secret in found for part in (secret, secret.partition("-")[2]) if len(part) > 12}
    assert [line for line in log.splitlines() if any(part in line for part in parts)] == []
