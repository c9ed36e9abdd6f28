"""What sets off each of the five walks, done to a service over what it serves: HTTP, sockets, forms."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any
from uuid import uuid4

import httpx
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from tests.contract.streams.client import Frame, Socket
from tests.factories import make_account, make_instrument, make_key, make_tiers, make_user
from tests.news.ingest.feed_server import item, reply, rss
from tests.patience import PATIENCE_S, wait_until
from tests.staff import staff_client

from .counting import Run
from .service import Outside, Service

RUNS = 3
# Four times this is longer than what the service does by itself waits between two times, but for what it
# does every minute: that happens in one of the runs at most.
IDLE_S = 4.0
# To be through; what is done by and by may begin soon after.
TICK_TAKES_S = 0.1
# What a scenario left to be done is done, and what it waits for is in place.
SETTLE_S = 0.5
SYMBOL, VENUE_NAME = "BTCUSD", "BTC/USD"
SPREAD = 0.01
QUOTE = 100.0
TERMS = {"symbol": SYMBOL, "direction": "buy", "entry": "100.01", "stop_loss": "99.5", "take_profit": "100.5"}
AT_TARGET = 100.6
# None is like another, or it would be taken for the same news.
TITLES = (
    "Bitcoin climbs as funds buy",
    "Ether falls after a long rally",
    "Gold steady before the Fed decision",
    "Oil drops on surprise stock build",
    "Sterling slips while gilts recover",
    "Tokyo shares close at record high",
    "Wheat jumps on frost in Kansas",
    "Copper eases with demand in doubt",
)
TOKEN = "t" * 32
Perform = Callable[[], int]
"""Performs a scenario until the client has what it waits for; returns when it began, by the shared clock."""


class Scenarios:
    def __init__(self, service: Service, outside: Outside) -> None:
        """In the database that the models mean, which is the service's."""
        self.service, self.outside = service, outside
        self._key = make_key(make_account(tier="premium"))
        publisher = make_user("anna")
        publisher.user_permissions.add(Permission.objects.get(codename="publish_signal"))
        page = Client()
        page.force_login(publisher)
        self._publisher = cookies_of(page)
        self._staff = cookies_of(staff_client(make_user("boss", is_staff=True, is_superuser=True)))
        self._opened = ExitStack()
        self._quoted = QUOTE
        self._titles = iter(TITLES)

    @contextmanager
    def listening(self) -> Iterator[Scenarios]:
        with self._opened:
            self.outside.run(self.outside.venue.visited(names=1))
            self._prices = self._stream("/ws/market", self._key, symbols=[SYMBOL])
            self._signals = self._stream("/ws/signals", self._key, events=["signal.closed"])
            yield self

    @property
    def all(self) -> dict[str, Perform]:
        return {
            "a venue's tick → socket": self.tick,
            "GET quote → bytes": self.quote,
            "a signal published on the form, then closed by a tick": self.signal,
            "RSS → /api/news": self.news,
            "a key revoked in the admin → socket closed with 4401": self.revocation,
        }

    def tick(self) -> int:
        return self._tick(round(self._quoted + SPREAD, 2))

    def quote(self) -> int:
        began = time.monotonic_ns()
        self._get(f"/api/market/{SYMBOL}/quote")
        return began

    def signal(self) -> int:
        self._tick(QUOTE)
        time.sleep(SETTLE_S)
        began = time.monotonic_ns()
        self._post("/settings/signals", self._publisher, **TERMS, token=str(uuid4()))
        hear_until(self._signals, lambda frame: "entry" in frame)
        # Only then does the next tick find it among those that are watched.
        time.sleep(SETTLE_S)
        self._send(AT_TARGET)
        hear_until(self._signals, lambda frame: frame.get("type") == "signal.closed")
        return began

    def news(self) -> int:
        title = next(self._titles)
        sources = apps.get_model("news", "Source").objects
        entry = item(title, guid=title, link=f"https://wire.example/{uuid4()}", date=format_datetime(now()))
        self.outside.feeds.paths["/rss"] = reply(rss(entry))
        began = time.monotonic_ns()
        due = {"category": "crypto", "trust": "publish", "outcome": "", "next_poll_at": now()}
        sources.update_or_create(name="Wire", defaults=due | {"address": f"{self.outside.feeds.url}/rss"})
        wait_until(lambda: bool(sources.get().outcome))
        assert title in self._get("/api/news").text, sources.get().last_error
        return began

    def revocation(self) -> int:
        account = make_account()
        secret = make_key(account)
        (key,) = apps.get_model("accounts", "ApiKey").objects.filter(account=account)
        with ExitStack() as opened:
            socket = self._stream("/ws/market", secret, opened, symbols=[SYMBOL])
            time.sleep(SETTLE_S)
            began = time.monotonic_ns()
            self._post(reverse("admin:accounts_apikey_revoke", args=(key.pk,)), self._staff, answered="1")
            socket.hear_all()
            assert socket.connection.close_code == 4401, socket.connection.close_code
        return began

    def _tick(self, bid: float) -> int:
        began = time.monotonic_ns()
        self._send(bid)
        hear_until(self._prices, lambda frame: frame.get("bid") == bid)
        return began

    def _send(self, bid: float) -> None:
        self._quoted = bid
        venue = self.outside.venue
        quote = venue.quote(VENUE_NAME, bid, round(bid + SPREAD, 2), time.time_ns() // 1_000_000)
        self.outside.run(venue.send(quote))

    def _stream(self, path: str, key: str, opened: ExitStack | None = None, **wanted: Any) -> Socket:
        socket = (opened or self._opened).enter_context(Socket(self.service, path, key))
        socket.send({"action": "subscribe", **wanted})
        hear_until(socket, lambda frame: frame.get("type") == "subscribed")
        return socket

    def _get(self, path: str) -> httpx.Response:
        answer = httpx.get(f"{self.service.url}{path}", headers={"X-API-Key": self._key}, timeout=PATIENCE_S)
        assert answer.status_code == 200, answer.text
        return answer

    def _post(self, path: str, cookies: dict[str, str], **fields: str) -> None:
        with httpx.Client(cookies=cookies, timeout=PATIENCE_S) as browser:
            answer = browser.post(f"{self.service.url}{path}", data={"csrfmiddlewaretoken": TOKEN} | fields)
        assert answer.status_code == 302, answer.text


def prepare() -> None:
    """What is there before the service starts."""
    make_tiers()
    make_instrument(SYMBOL, type="crypto", source=f"kraken:{VENUE_NAME}")


def record(service: Service, perform: Perform) -> list[Run]:
    """Performed once more before, because the first time loads and remembers things."""
    return [recorded(service, perform) for _ in range(1 + RUNS)][1:]


def recorded(service: Service, perform: Perform) -> Run:
    service.start_recording()
    began_ns = perform()
    time.sleep(SETTLE_S)
    return [call for call in service.stop_recording() if call.at_ns >= began_ns]


def record_idle(service: Service, tick: Perform) -> set[tuple[str, ...]]:
    """With what a tick leaves to be done by and by, which is not the same the first times."""
    stacks: set[tuple[str, ...]] = set()
    for _ in range(4):
        tick()
        time.sleep(TICK_TAKES_S)
        service.start_recording()
        time.sleep(IDLE_S)
        stacks.update(call.stack for call in service.stop_recording())
    return stacks


def cookies_of(browser: Client) -> dict[str, str]:
    session = browser.cookies[settings.SESSION_COOKIE_NAME].value
    return {settings.SESSION_COOKIE_NAME: session, settings.CSRF_COOKIE_NAME: TOKEN}


def hear_until(socket: Socket, is_it: Callable[[Frame], bool]) -> None:
    while not is_it(socket.hear()):
        pass


def now() -> datetime:
    return datetime.now(UTC)
