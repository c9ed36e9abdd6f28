"""Each kind of secret goes through a service in production, while all is well and while nothing is: no line
that it writes has one. Its probes answer whoever asks."""

from __future__ import annotations

import itertools
import json
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import httpx
import pytest
import redis as redis_client
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from accounts.key_text import generate_key
from tests.patience import PATIENCE_S, wait_until
from tests.programs import services
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation, Process, manage

HOST = "tickwire.example"
HTTPS = {"Host": HOST, "X-Forwarded-Proto": "https"}
# The part of a key that is no public prefix.
OWN_PART = 16
PUBLIC = "not-a-secret-at-all"
# A configured logger of the real program writes each in every place of a record.
LOGGED = """
import logging
logger = logging.getLogger("canary")
for secret in {secrets!r}:
    try:
        try:
            raise KeyError(secret)
        except KeyError as cause:
            raise ValueError("no " + secret) from cause
    except ValueError:
        named = dict.fromkeys(("password", "new_password"), "hunter2")
        logger.exception("of %s", secret, extra={{"field": secret, **named}})
    logger.error("%d", secret)
"""
pytestmark = pytest.mark.row("31, canaries", "no secret in log lines or answers")


def canary() -> str:
    return secrets.token_urlsafe(36)


class Canaries:
    """What must not be seen, by its kind."""

    def __init__(self) -> None:
        self.settings = {
            name: canary() for name in ("SECRET_KEY", "KEY_PEPPER", "OANDA_TOKEN", "ANTHROPIC_API_KEY")
        }
        # As short as people make them.
        self.settings |= {
            "METRICS_TOKEN": secrets.token_hex(4),
            "OPENAI_API_KEY": f"sk-{secrets.token_hex(4)}",
        }
        self.database, self.redis, self.mail = canary(), canary(), canary()
        self.sent = {
            name: canary()
            for name in (
                "password",
                "session",
                "csrf",
                "totp",
                "reset",
                "confirm",
                "login",
                "bearer",
                "query",
            )
        }
        self.key, self.wrong, self.ingest = "", generate_key(), generate_key("tw_ingest_")

    def all(self) -> dict[str, str]:
        keys = {"key": self.key, "wrong key": self.wrong, "ingest key": self.ingest}
        own = {"database": self.database, "redis": self.redis, "mail": self.mail}
        return {**self.settings, **self.sent, **own} | {name: key[OWN_PART:] for name, key in keys.items()}


class Service:
    def __init__(self, installation: Installation, server: Process, canaries: Canaries) -> None:
        self.installation, self.server, self.canaries = installation, server, canaries
        self.environment: dict[str, str] = {}
        self._strangers = itertools.cycle(range(1, 255))

    def ask(self, path: str, method: str = "GET", **more: Any) -> httpx.Response:
        # Each from elsewhere, because of one stranger only a few lines are written.
        address = {"X-Forwarded-For": f"203.0.113.{next(self._strangers)}"}
        headers = HTTPS | address | more.pop("headers", {})
        return httpx.request(method, f"{self.server.url}{path}", headers=headers, timeout=PATIENCE_S, **more)

    def send_everything(self) -> None:
        sent = self.canaries.sent
        for key in (self.canaries.key, self.canaries.wrong, self.canaries.ingest):
            self.send_key(key)
        self.open_pages(
            "/",
            "/admin/",
            "/settings/keys",
            f"/docs?token={sent['query']}",
            f"/api/symbols?api_key={sent['query']}&secret={sent['totp']}",
            f"/accounts/2fa/totp/activate/?secret={sent['totp']}",
            f"/accounts/password/reset/key/1a-{sent['reset']}/",
            f"/accounts/confirm-email/{sent['confirm']}/",
            f"/demo-login/{sent['login']}",
            f"/{PUBLIC}",
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
        sent = self.canaries.sent
        return {"Cookie": f"sessionid={sent['session']}; csrftoken={sent['csrf']}"}

    def open_pages(self, *paths: str) -> None:
        for path in paths:
            self.ask(
                path, headers=self._cookies | {"Authorization": f"Bearer {self.canaries.sent['bearer']}"}
            )

    def send_key(self, key: str) -> None:
        for path in ("/api/symbols", "/api/nothing", "/metrics", f"/docs?api_key={key}", f"/{key}"):
            for headers in ({"X-API-Key": key}, {"Authorization": f"Bearer {key}"}, {"X-Ingest-Key": key}):
                self.ask(path, headers=headers)
        self.ask("/ingest/ticks", "POST", content=f'{{"key": "{key}"}}', headers={"X-Ingest-Key": key})
        for path in ("/ws/market", f"/ws/signals?api_key={key}", "/ws/ingest"):
            line = socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE_S)
            with (
                suppress(WebSocketException, OSError, TimeoutError),
                connect(f"ws://{HOST}{path}", sock=line, proxy=None, open_timeout=PATIENCE_S) as stream,
            ):
                for message in ({"action": "list", "api_key": key}, {"action": "auth", "key": key}):
                    stream.send(json.dumps(message))
                    stream.recv(PATIENCE_S)

    def lines(self) -> list[str]:
        return self.server.log.read_text().splitlines()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("canaries")
    canaries, database = Canaries(), PrivatePostgres(directory)
    with ExitStack() as servers:
        servers.enter_context(database.running())
        redis = servers.enter_context(services.redis(directory))
        with redis_client.Redis.from_url(redis) as client:
            client.config_set("requirepass", canaries.redis)
        installation = Installation(
            directory,
            database.url.replace("postgres@", f"postgres:{canaries.database}@"),
            redis.replace("://", f"://:{canaries.redis}@"),
        )
        given = canaries.settings | {
            "PRODUCTION": "1",
            "ALLOWED_HOSTS": HOST,
            "TRUSTED_PROXIES": "127.0.0.1",
            "EMAIL_URL": f"smtp://user:{canaries.mail}@127.0.0.1:1",
            "LOG_LEVEL": "DEBUG",
            "ACCESS_LOG": "1",
            # Nothing answers that it would wait for.
            "STOP_WITHIN_S": "2",
        }
        environment = installation.environment(**given)
        issued = installation_manage(installation, given, "issue_key", "canary")
        canaries.key = re.findall(r"tw_live_\w+", issued)[0]
        with installation.web_process(0, **given) as server:
            service = Service(installation, server, canaries)
            service.environment = environment
            service.send_everything()
            # Now nothing answers that the service needs.
            servers.close()
            wait_until(lambda: "Not in order" in server.log.read_text())
            service.send_key(canaries.key)
            service.open_pages(f"/docs?token={canaries.sent['query']}", "/settings/keys")
            yield service


def installation_manage(installation: Installation, given: dict[str, str], *words: str) -> str:
    done = manage(installation.environment(**given), *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_log_line_contains_a_secret(service: Service) -> None:
    log = service.server.log.read_text()
    assert [kind for kind, secret in service.canaries.all().items() if secret in log] == []


def test_control_harmless_text_is_found(service: Service) -> None:
    log = service.server.log.read_text()
    assert f"/{PUBLIC}" in log
    assert service.canaries.key[:OWN_PART] in log
    for what in ("invalid_api_key", '"status":503', "/ws/market closed with 4401", "Not in order"):
        assert what in log, what


def test_log_lines_are_json_and_nothing_else(service: Service) -> None:
    begun = [line for line in service.lines() if line.startswith("{")]
    assert len(begun) > 50
    assert {"timestamp", "level", "logger", "event"} <= set.intersection(
        *(set(json.loads(line)) for line in begun)
    )


def test_no_part_of_a_log_record_leaks_a_secret(service: Service) -> None:
    """Of those that are known by their form or their value; what was sent looks like any other text."""
    canaries = service.canaries
    kept = [each for kind, each in canaries.all().items() if kind not in canaries.sent]
    whole = [*canaries.settings.values(), canaries.database, canaries.redis, canaries.mail]
    whole += [canaries.key, canaries.wrong, canaries.ingest]

    done = manage(service.environment, "shell", "-c", LOGGED.format(secrets=whole))

    assert done.stderr.count('"logger":"canary"') == 2 * len(whole)
    assert [each for each in (*kept, "hunter2") if each in done.stderr + done.stdout] == []


@pytest.mark.parametrize("path", ["/livez", "/healthz"])
@pytest.mark.parametrize(
    "head",
    [
        "HTTP/1.0\r\n\r\n",
        "HTTP/1.1\r\nConnection: close\r\n\r\n",
        "HTTP/1.1\r\nHost: 10.244.1.7:8000\r\nUser-Agent: kube-probe/1.30\r\nConnection: close\r\n\r\n",
        "HTTP/1.1\r\nHost: somebody.else\r\nX-Forwarded-Proto: http\r\nConnection: close\r\n\r\n",
    ],
    ids=["no host", "1.1 without host", "kubelet", "another host"],
)
def test_probes_answer_any_host_while_everything_else_fails(service: Service, path: str, head: str) -> None:
    answer = raw(service.server, f"GET {path} {head}".encode())
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"location:" not in answer.lower()
    assert f'"{path}"' not in service.server.log.read_text()


def raw(server: Process, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as line:
        line.sendall(request)
        heard = b""
        while more := line.recv(65536):
            heard += more
        return heard
