"""The last release and this code serve side by side, under traffic, over the migrated database. Nothing that
was acknowledged is lost, and every restart is announced."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import io
import itertools
import json
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
from django.conf import settings

from core.version import VERSION
from tests.patience import PATIENCE_S, until, wait_until
from tests.programs.services import free_port, postgres, redis
from tests.reliability.clients.person import TOKEN
from tests.reliability.clients.traffic import Asking, PushingClient, PushingSocket, ResumingClient, Traffic
from tests.reliability.clients.writer import Writer
from tests.reliability.fixtures import Tell
from tests.reliability.services.engine_processes import RUNS, WAITS, EngineProcess, engine_process
from tests.reliability.services.haproxy import haproxy, is_up
from tests.reliability.services.processes import ROOT, Installation, Process
from tools.lint.migrations.last import Release, last_release

LOCK = "requirements.lock"


class ReleaseMissing(Exception):
    """What there is of it cannot be had; the message says what to do."""


def unpack(release: Release, folder: Path) -> Path:
    """Its files, as they were committed."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", release.commit], cwd=ROOT, capture_output=True, check=False
    )
    if archive.returncode:
        raise ReleaseMissing(
            f"The commit of release {release} is not in this clone: a shallow clone has only the newest ones."
            f" `git fetch --unshallow` brings all, `git fetch origin {release.commit}` this one."
        )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def python_for(code: Path) -> str:
    """An interpreter with exactly what the lock of this code names: ours where both locks are the same."""
    lock = (code / LOCK).read_bytes()
    if lock == (ROOT / LOCK).read_bytes():
        return sys.executable
    home = Path(sys.prefix) / f"release-{hashlib.sha256(lock).hexdigest()[:12]}"
    if not home.exists():
        make_environment(code / LOCK, home)
    return str(home / "bin" / "python")


def make_environment(lock: Path, home: Path) -> None:
    uv, half = str(Path(sys.executable).parent / "uv"), home.with_name(f"{home.name}-half")
    shutil.rmtree(half, ignore_errors=True)
    for command in (
        [uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, str(half)],
        [
            uv,
            "pip",
            "sync",
            "--quiet",
            "--require-hashes",
            "--python",
            str(half / "bin" / "python"),
            str(lock),
        ],
    ):
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            raise ReleaseMissing(f"The packages of the last release could not be installed:\n{made.stderr}")
    half.rename(home)


def as_released(installation: Installation, folder: Path) -> Installation:
    """The same database and Redis, served by the code of the last release."""
    released = copy.copy(installation)
    released.root = unpack(last_release(), folder)
    released.python = python_for(released.root)
    return released


FORM = "/settings/signals"
NEXT_S, AGAIN_S = 0.15, 0.1
# Above every ask of a source.
ENTRY = "1.005"
STOPPED = ("closed", "stop_loss")
# What becomes of a signal, by its stop: the bids of a source come back to the first again and again.
ENDS = {"1.00001": STOPPED, "0.5": ("active", "")}
STOPS = tuple(ENDS)


class PagePublisher(Writer):
    def __init__(self, name: str, session: str, key: str, symbol: str) -> None:
        self.has_ended = threading.Event()
        self._name, self._symbol = name, symbol
        self._cookies = {settings.SESSION_COOKIE_NAME: session, settings.CSRF_COOKIE_NAME: TOKEN}
        self._headers = {"X-API-Key": key}
        self._numbers = itertools.count(1)
        self.url = ""
        self.acknowledged: dict[str, str] = {}
        """The stops of the signals that were said to be published, by target: no two have the same."""
        self.ids: dict[str, str] = {}
        """Those of them that were in the feed right afterwards, by target."""
        self.answers: Counter[str] = Counter()

    def turn(self) -> None:
        number = next(self._numbers)
        target, stop = f"{9 + number / 100_000:.5f}", STOPS[number % len(STOPS)]
        if not self.publish(stop, target):
            return
        self.acknowledged[target] = stop
        newest = self._feed("?status=all&limit=5&user=" + self._name)["items"]
        self.ids |= {f"{each['take_profit']:.5f}": each["id"] for each in newest}
        time.sleep(NEXT_S)

    def publish(self, stop: str, target: str) -> str:
        """The token of its form, once that is taken; empty if this ended before."""
        form = {
            **{"token": str(uuid4()), "symbol": self._symbol},
            **{"direction": "buy", "entry": ENTRY, "stop_loss": stop, "take_profit": target},
        }
        # The same form until it is taken: sent twice, it is one signal.
        while not self._send(form):
            if self.has_ended.is_set():
                return ""
            time.sleep(AGAIN_S)
        return form["token"]

    def post(self, path: str, form: dict[str, str]) -> httpx.Response:
        form = {"csrfmiddlewaretoken": TOKEN} | form
        return httpx.post(f"{self.url}{path}", data=form, cookies=self._cookies, timeout=PATIENCE_S)

    def _send(self, form: dict[str, str]) -> bool:
        """Whether it was said to be published. The page answers a good form by leading back to itself."""
        try:
            answer = self.post(FORM, form)
        except httpx.TransportError as error:
            self.answers[type(error).__name__] += 1
            return False
        is_taken = answer.status_code == 302 and answer.headers["location"].partition("?")[0] == FORM
        self.answers["published" if is_taken else str(answer.status_code)] += 1
        return is_taken

    def _feed(self, rest: str) -> Any:
        """None for what is not there."""
        answer = httpx.get(f"{self.url}/api/signals{rest}", headers=self._headers, timeout=PATIENCE_S)
        return None if answer.status_code == 404 else answer.raise_for_status().json()

    def ends(self) -> dict[str, tuple[str, str]]:
        """By target, what the feed says now of the signals that were acknowledged; nothing if it has none."""
        known = {target: self.ids[target] for target in self.acknowledged if target in self.ids}
        found = {target: self._feed(f"/{signal}") for target, signal in known.items()}
        return {
            target: (each["status"], each.get("close_reason", ""))
            for target, each in found.items()
            if each and f"{each['take_profit']:.5f}" == target
        }

    def wait_for_the_ticks(self) -> None:
        """Until they have closed what they are to close."""
        due = [target for target, stop in self.acknowledged.items() if ENDS[stop] == STOPPED]
        for signal in (self.ids[target] for target in due if target in self.ids):
            wait_until(partial(self._is_over, signal))

    def _is_over(self, signal: str) -> bool:
        """Or it is gone."""
        found = self._feed(f"/{signal}")
        return found is None or found["status"] == "closed"

    def wrong(self) -> dict[str, tuple[str, str] | None]:
        """By target, what became of signals that were acknowledged and did not end as they had to."""
        ends = self.ends()
        return {
            target: ends.get(target)
            for target, stop in self.acknowledged.items()
            if ends.get(target) != ENDS[stop]
        }


PAGE = (ROOT / "docs/operate/upgrade.md").read_text()
(COMMAND,) = re.findall(r"^ *(curl .*tickwire_version)$", PAGE, re.MULTILINE)
# Of the first web process of the units.
PORT = ":18001/"


def told_version(port: int) -> str:
    """Empty where the command finds nothing."""
    assert PORT in COMMAND
    ran = subprocess.run(
        ["sh", "-c", COMMAND.replace(PORT, f":{port}/")], capture_output=True, text=True, check=False
    )
    return "".join(re.findall(r'^tickwire_version\{version="([^"]+)"\}', ran.stdout, re.MULTILINE))


def hears_engine(port: int, pid: int) -> bool:
    text = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S).text
    named = re.search(rf'^tickwire_engine_info{{[^}}]*writer="[^":]*:{pid}:', text, re.MULTILINE)
    return named is not None and "\ntickwire_engine_up 1.0\n" in text


STREAMS, POLLERS, SOURCES = 8, 3, 2
DRAIN_S = 2.0
# Releases whose processes end before their slots are free: some who come back are refused for a moment.
KEEP_THEIR_SLOTS = {"0.1.0"}
PUBLISHER = "publisher"
PATHS = ("/api/symbols", "/api/limits", "/api/signals", "/api/session")
UNLIMITED = {"PUBLICATIONS_PER_MINUTE": "0", "ACTIVE_SIGNALS_PER_PUBLISHER": "0"}
# Run by the code of the release, which knows what its database looks like.
SET_UP = f"""
import json
from django.conf import settings
from django.contrib.auth.models import Permission
from django.test import Client
from market.push.keys import issue_ingest_key
from tests.factories import make_account, make_instrument, make_key, make_tier, make_user
tier = make_tier("upgraded", streams={STREAMS}, requests_per_minute=1_000_000)
symbols = [make_instrument(f"UPGRADED{{number}}").symbol for number in range({SOURCES})]
held = make_instrument("HELD", stale_after_s=3_600).symbol
publisher, browser = make_user("{PUBLISHER}"), Client()
publisher.user_permissions.add(Permission.objects.get(codename="publish_signal"))
browser.force_login(make_account(publisher).user)
session = browser.cookies[settings.SESSION_COOKIE_NAME].value
made = make_key(make_account(tier=tier)), issue_ingest_key("upgraded", by="test")[1], symbols, held, session
print(json.dumps(made))
"""
Steps = Callable[["Upgrade"], Awaitable[None]]


class Service:
    """Two web processes behind a proxy and an engine, each of the one code or the other."""

    def __init__(self, running: ExitStack) -> None:
        self._running, self.front = running, 0
        self.ports, self.metrics_ports = [free_port(), free_port()], [free_port(), free_port()]
        self._webs: dict[int, ExitStack] = {}
        self._engine: ExitStack | None = None
        self._engines = 0
        self.servers: dict[int, Process] = {}

    def put_web(self, number: int, code: Installation) -> None:
        """In the place of the one before, once that has ended."""
        port = self.ports[number]
        if number in self._webs:
            self._webs[number].close()
        self._webs[number] = self._running.enter_context(ExitStack())
        changes = UNLIMITED | {"DRAIN_S": str(DRAIN_S), "METRICS_PORT": str(self.metrics_ports[number])}
        self.servers[number] = self._webs[number].enter_context(code.web_process(port, **changes))

    def put_engine(self, code: Installation) -> None:
        """It stands by, then the one before ends."""
        self._engines += 1
        before, self._engine = self._engine, self._running.enter_context(ExitStack())
        engine: EngineProcess = self._engine.enter_context(engine_process(code, self._engines, {}))
        wait_until(lambda: engine.said(WAITS) or engine.said(RUNS))
        if before is not None:
            before.close()
        wait_until(lambda: engine.said(RUNS))
        self.engine_log, self.engine_pid = engine.log, engine.pid


class Made(NamedTuple):
    """By the release."""

    key: str
    ingest_key: str
    symbols: list[str]
    held: str
    """An instrument that has no source."""
    session: str

    def publisher(self, symbol: str) -> PagePublisher:
        return PagePublisher(PUBLISHER, self.session, self.key, symbol)


def set_up(installation: Installation) -> Made:
    migrate(installation)
    made = installation.manage("shell", "--verbosity", "0", "-c", SET_UP)
    assert made.returncode == 0, made.stderr
    return Made(*json.loads(made.stdout.splitlines()[-1]))


def traffic_of(made: Made) -> Traffic:
    key, ingest_key, symbols, *_ = made
    return Traffic(
        [ResumingClient(key, symbols) for _ in range(STREAMS)],
        [Asking(PATHS[number % len(PATHS)], key) for number in range(POLLERS)],
        [
            *(PushingClient(ingest_key, symbol) for symbol in symbols[: SOURCES // 2]),
            *(PushingSocket(ingest_key, symbol) for symbol in symbols[SOURCES // 2 :]),
        ],
    )


def migrate(installation: Installation) -> None:
    done = installation.manage("migrate", "--verbosity", "0")
    assert done.returncode == 0, done.stderr


def issue_key(installation: Installation, username: str) -> str:
    done = installation.manage("issue_key", username)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Upgrade:
    """Its steps, each of which leaves the service as it is to go on."""

    def __init__(self, service: Service, made: Made, released: Installation, here: Installation) -> None:
        self.service, self.made, self.released, self.here = service, made, released, here
        self.traffic, self.publisher = traffic_of(made), made.publisher(made.symbols[0])
        self.publisher.url = f"http://127.0.0.1:{service.front}"
        self._keys: list[str] = []

    async def do(self, step: Callable[..., object], *given: Any) -> None:
        """And let all sources push some ticks, and the publisher publish if it does, before the next."""
        await asyncio.to_thread(step, *given)
        before, publisher = [source.taken for source in self.traffic.sources], self.publisher
        published = len(publisher.acknowledged)
        await until(
            lambda: all(
                source.taken > taken + 3 for source, taken in zip(self.traffic.sources, before, strict=True)
            )
        )
        await until(lambda: publisher.has_ended.is_set() or len(publisher.acknowledged) > published)

    def put_web(self, number: int, code: Installation) -> None:
        self.service.put_web(number, code)
        wait_until(lambda: is_up(self.service.front, self.service.ports[number]))

    def check_keys(self) -> None:
        """Keys that either code has made are known to both."""
        self._keys += [
            issue_key(code, f"{name}-{len(self._keys)}")
            for name, code in (("released", self.released), ("here", self.here))
        ]
        answers = [
            server.ask("/api/limits", key).status_code
            for key in self._keys
            for server in self.service.servers.values()
        ]
        assert set(answers) == {200}, answers

    def check_ledger(self, *codes: Installation) -> None:
        """What both have written."""
        for code in codes:
            verified = code.manage("verify_ledger")
            assert verified.returncode == 0, verified.stderr

    def hear_the_engine(self) -> None:
        """In both web processes: what this one says of itself, and after the one before."""
        for port in self.service.metrics_ports:
            wait_until(partial(hears_engine, port, self.service.engine_pid))

    def check_version(self, number: int) -> None:
        assert told_version(self.service.metrics_ports[number]) == VERSION


@contextmanager
def serving_the_release(directory: Path) -> Iterator[Upgrade]:
    """On a database in which there was nothing."""
    with ExitStack() as running:
        database_url, redis_url = (running.enter_context(server(directory)) for server in (postgres, redis))
        here = Installation(directory, database_url, redis_url)
        released, service = as_released(here, directory / "released"), Service(running)
        made = set_up(released)
        service.put_engine(released)
        for number in range(len(service.ports)):
            service.put_web(number, released)
        service.front = running.enter_context(haproxy(directory, service.ports))
        yield Upgrade(service, made, released, here)


async def over(steps: Steps, directory: Path, tell: Tell) -> None:
    """Traffic goes on while the steps are taken."""
    with serving_the_release(directory) as upgrade:
        traffic, publisher = upgrade.traffic, upgrade.publisher
        async with traffic.at(upgrade.service.front):
            with publisher:
                await steps(upgrade)
                # Leaving the context would keep the streams waiting.
                await asyncio.to_thread(publisher.stop)
            await asyncio.to_thread(publisher.wait_for_the_ticks)
            await asyncio.to_thread(upgrade.check_ledger, upgrade.here)
        tell(f"release {last_release()}")
        check(traffic, tell)
        check_signals(publisher, tell)


async def upgraded(upgrade: Upgrade) -> None:
    await upgrade.do(migrate, upgrade.here)
    await upgrade.do(upgrade.put_web, 0, upgrade.here)
    await upgrade.do(upgrade.check_keys)
    await upgrade.do(upgrade.check_version, 0)
    await upgrade.do(upgrade.put_web, 1, upgrade.here)


async def mixed(upgrade: Upgrade) -> None:
    """Each of the two engines serves web processes of both."""
    await upgrade.do(migrate, upgrade.here)
    await upgrade.do(upgrade.put_web, 0, upgrade.here)
    await upgrade.do(upgrade.check_keys)
    await upgrade.do(upgrade.check_version, 0)
    await upgrade.do(upgrade.hear_the_engine)
    # It takes for altered what another engine than its own closes.
    await upgrade.do(upgrade.check_ledger, upgrade.released)
    await upgrade.do(upgrade.service.put_engine, upgrade.here)
    await upgrade.do(upgrade.hear_the_engine)
    await upgrade.do(upgrade.put_web, 1, upgrade.released)


def check_signals(publisher: PagePublisher, tell: Tell) -> None:
    wrong, ends = publisher.wrong(), Counter(publisher.ends().values())
    tell(f"pages {dict(publisher.answers)}; signals {dict(ends)}; acknowledged but lost or wrong: {wrong}")
    assert not wrong
    # Before the first quote is heard, and where a stop lies above the bid, the page says so.
    assert set(publisher.answers) <= {"published", "400"}


def check(traffic: Traffic, tell: Tell) -> None:
    answers, pushes = traffic.answers(), traffic.pushes()
    tell(f"{answers.total()} requests: {dict(answers)}; {pushes.total()} pushes: {dict(pushes)}")
    tell(f"closed with {dict(traffic.ends())}, of which without notice: {traffic.unannounced()}")
    tell(
        f"refused: {dict(traffic.refusals())}; gaps: {traffic.holes()}, ticks accepted but not"
        f" delivered: {traffic.lost()}"
    )
    assert set(answers) == {"200"}
    # While one engine follows the other, a source may have to wait and send the same again.
    assert set(pushes) <= {"accepted", "duplicate", "503", "overloaded"}
    # Of ticks that were held up, a duplicate says only that they were taken before.
    assert all(source.sent - source.taken <= source.held_up.total() for source in traffic.sources)
    assert (traffic.holes(), traffic.lost(), traffic.unannounced()) == (0, 0, 0)
    assert set(traffic.ends()) == {1012}
    # Their streams went on from old to new.
    assert all(client.sessions > 1 for client in traffic.streams)
    assert last_release().version in KEEP_THEIR_SLOTS or not traffic.refusals()
