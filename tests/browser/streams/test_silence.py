"""A socket that is open and says nothing: a stream tells it in time from one that has nothing to say."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import OpenPage

pytestmark = pytest.mark.also_on("oldest")

# A stream over sockets of the test's own, which answer pings unless they are frozen.
STREAM = """async () => {
    const { Stream } = await import("/static/terminal/streams/stream.js");
    globalThis.sockets = [];
    globalThis.WebSocket = class Socket {
        static OPEN = 1;
        static CONNECTING = 0;
        readyState = 0;
        pings = 0;
        constructor() {
            sockets.push(this);
            setTimeout(() => ((this.readyState = 1), this.onopen()), 10);
        }
        send(text) {
            const { action } = JSON.parse(text);
            if (action === "ping") this.pings += 1;
            if (globalThis.isFrozen) return;
            if (action === "ping") this.say({ type: "pong" });
            else this.say({ type: "subscribed", epoch: "1", positions: { EURUSD: 1 } });
        }
        say(frame) {
            setTimeout(() => this.onmessage({ data: JSON.stringify(frame) }), 10);
        }
        close() {}
    };
    const token = { get: async () => "key", forget() {} };
    globalThis.stream = new Stream("/ws/market", token, { hear() {}, tell() {} });
    stream.want(["EURUSD"]);
}"""
TICK = "() => sockets.at(-1).say({ symbol: 'EURUSD', seq: 2, bid: 1, ask: 1 })"
STATE = "() => [stream.state.status, stream.state.isSilent, sockets.length]"
LIVE, SILENT = ["live", False, 1], ["live", True, 1]


# What was asked for in vain, with and without a pause that the service asked for.
PERSISTING = """async () => {
    const { hurry, persist } = await import("/static/terminal/api.js");
    globalThis.asked = { failed: 0, refused: 0 };
    const attempt = (name, retryAfterS) => () => {
        asked[name] += 1;
        throw Object.assign(new Error("in vain"), { retryAfterS });
    };
    persist(attempt("failed", 0), () => true);
    persist(attempt("refused", 20), () => true);
    globalThis.hurry = hurry;
}"""


def test_what_failed_is_asked_again_once_the_service_is_back(open_page: OpenPage) -> None:
    page = open_page("/docs")
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    page.evaluate(PERSISTING)
    # Half a second, one, two and four have passed; the next pause has eight.
    page.clock.run_for(8_000)
    assert page.evaluate("asked") == {"failed": 5, "refused": 1}
    page.evaluate("hurry()")
    page.clock.run_for(100)
    assert page.evaluate("asked") == {"failed": 6, "refused": 1}


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    page = open_page("/docs")
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    page.evaluate(STREAM)
    page.clock.run_for(100)
    assert page.evaluate(STATE) == LIVE
    return page


def freeze(page: Page, is_frozen: bool = True) -> None:
    page.evaluate("(is) => { globalThis.isFrozen = is; }", is_frozen)


def pings(page: Page) -> Any:
    return page.evaluate("() => sockets[0].pings")


def test_service_that_freezes_is_told_within_five_seconds_of_its_last_price(page: Page) -> None:
    page.clock.run_for(3_000)
    page.evaluate(TICK)
    page.clock.run_for(100)
    freeze(page)
    page.clock.run_for(2_000)
    assert page.evaluate(STATE) == LIVE
    page.clock.run_for(3_000)
    assert page.evaluate(STATE) == SILENT


def test_service_that_goes_on_is_live_again_at_its_first_word(page: Page) -> None:
    freeze(page)
    page.clock.run_for(8_000)
    assert page.evaluate(STATE) == SILENT
    freeze(page, False)
    page.evaluate(TICK)
    page.clock.run_for(100)
    assert page.evaluate(STATE) == LIVE


def test_socket_that_stays_silent_is_given_up(page: Page) -> None:
    freeze(page)
    page.clock.run_for(17_000)
    assert page.evaluate(STATE)[2] == 2


def test_quiet_market_is_no_silence_and_is_not_asked_more_often(page: Page) -> None:
    page.clock.run_for(60_000)
    assert page.evaluate(STATE) == LIVE
    assert 11 <= pings(page) <= 13


def test_computer_that_slept_has_heard_no_silence(page: Page) -> None:
    page.clock.fast_forward(3_600_000)
    assert page.evaluate(STATE) == LIVE
    page.clock.run_for(30_000)
    assert page.evaluate(STATE) == LIVE
