"""Chromium's own WebSocket: a client that nobody here wrote, and that cannot send a header."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page
from websockets.frames import Frame as WebSocketFrame

from accounts.models import User
from serving.websocket.protocol import WebSocketProtocol
from tests.browser.conftest import OpenPage, beside
from tests.client import Server
from tests.contract.streams import strangers
from tests.contract.streams.client import MARKET, ORDERFLOW, Frame
from tests.contract.streams.publishing import publish_signal
from tests.contract.streams.ticker import Ticker, ticking
from tests.factories import make_account, make_instrument, make_key, make_tier, make_user
from tests.patience import PATIENCE_S, wait_until

pytestmark = pytest.mark.also_on("oldest")

LIMIT = 3
NUMBERED = (MARKET, ORDERFLOW)
# The next ping comes only after the answer to the one before. A busy machine may take its time for that.
QUICK_PINGS: dict[str, Any] = {"ws_ping_interval": 0.1, "ws_ping_timeout": PATIENCE_S}
ANSWERS = 10
# What a socket heard waits until it is asked for.
SOCKETS = """
window.sockets = [];
window.Told = class {
  constructor(url) {
    this.told = [];
    this.socket = new WebSocket(url);
    this.socket.onmessage = ({data}) => this.tell({heard: data});
    this.socket.onclose = ({code, reason}) => this.tell({closed: [code, reason]});
    this.opened = new Promise((done) => { this.socket.onopen = done; });
  }
  tell(what) { this.wake ? this.wake(what) : this.told.push(what); this.wake = null; }
  next() { return this.told.shift() ?? new Promise((done) => { this.wake = done; }); }
};
"""
# Chromium complains of what is sent to a socket that was refused a moment ago.
SEND = """([number, text]) => {
  const {socket} = sockets[number];
  if (socket.readyState === WebSocket.OPEN) socket.send(text);
}"""
OPEN = """async (path) => {
  const made = new Told(`ws://${location.host}${path}`);
  await made.opened;
  return sockets.push(made) - 1;
}"""


class ChromiumSocket:
    def __init__(self, page: Page, path: str) -> None:
        self._page = page
        self._number: int = page.evaluate(OPEN, path)

    def send(self, text: str) -> None:
        self._page.evaluate(SEND, [self._number, text])

    def hear(self) -> Frame:
        frame: Frame = json.loads(self._next()["heard"])
        return frame

    def closed(self) -> tuple[int, str]:
        code, reason = self._next()["closed"]
        return code, reason

    def leave(self) -> None:
        self._page.evaluate("(number) => sockets[number].socket.close()", self._number)
        while "closed" not in (told := self._next()):
            pass
        assert told["closed"] == [1005, ""]

    def _next(self) -> Any:
        return self._page.evaluate("(number) => sockets[number].next()", self._number)


class ChromiumWorld:
    symbol = "EURUSD"

    def __init__(self, key: str, publisher: User, ticker: Ticker, page: Page) -> None:
        self.key, self._publisher, self._ticker, self._page = key, publisher, ticker, page

    def open(self, path: str) -> ChromiumSocket:
        return ChromiumSocket(self._page, path)

    def tick(self, count: int = 1) -> None:
        self._ticker(self.symbol, count)

    def publish_signal(self) -> None:
        beside(lambda: publish_signal(self.symbol, self._publisher))


@pytest.fixture
def server(transactional_db: None) -> Iterator[Server]:
    with Server(**QUICK_PINGS) as running:
        yield running


@pytest.fixture
def pongs(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What was answered to the pings of the service."""
    answers: list[bytes] = []
    heed = WebSocketProtocol.handle_pong

    def noted(protocol: WebSocketProtocol, event: WebSocketFrame) -> None:
        answers.append(bytes(event.data))
        heed(protocol, event)

    monkeypatch.setattr(WebSocketProtocol, "handle_pong", noted)
    return answers


@pytest.fixture
def publisher(server: Server) -> User:
    make_instrument(ChromiumWorld.symbol)
    return make_user()


@pytest.fixture
def key(server: Server) -> str:
    return make_key(make_account(tier=make_tier("roomy", streams=LIMIT)))


@pytest.fixture
def world(server: Server, publisher: User, key: str, open_page: OpenPage) -> Iterator[ChromiumWorld]:
    with ticking(server) as ticker:
        yield ChromiumWorld(key, publisher, ticker, open_page("/docs/streams", SOCKETS))


def test_chromium_is_served_as_the_specification_says(world: ChromiumWorld, pongs: list[bytes]) -> None:
    """One test of many steps, because each browser takes seconds to start."""
    for path in (*NUMBERED, strangers.SIGNALS):
        strangers.hears_exactly_the_fields_of_the_specification(world, path)
    for path in NUMBERED:
        strangers.resumes_where_it_was(world, path)
    kept = world.open(MARKET)
    assert strangers.subscribe(kept, world)["type"] == "subscribed"
    before = set(pongs)
    wait_until(lambda: len(set(pongs) - before) >= ANSWERS)
    world.tick()
    assert kept.hear()["symbol"] == world.symbol
    kept.leave()


def test_chromium_is_told_why_it_is_refused(world: ChromiumWorld) -> None:
    for path in (*NUMBERED, strangers.SIGNALS):
        strangers.is_refused_with_code_and_reason(world, path)
        strangers.is_taken_over(world, path, LIMIT)
    strangers.is_ended_with_1009_by_a_message_that_is_too_big(world)
