"""Open streams in the settings panel, and closing one from there."""

from __future__ import annotations

import re

import httpx
import pytest
from django.test import Client

from accounts.models import Account
from accounts.open_streams.registry import open_streams
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from tests.accounts.browser import logged_in, token_of
from tests.client import Server
from tests.contract.streams.client import MARKET, ORDERFLOW, code_of
from tests.contract.streams.conftest import Open
from tests.factories import make_account, make_key
from tests.patience import PATIENCE_S, wait_until

CLOSED = ("stream_closed", True, False)
PAGE, CLOSE = "/settings/streams", "/settings/streams/close"
FIELDS = r'name="path" value="([^"]+)">\s*<input type="hidden" name="opened_at" value="([\d.]+)"'


@pytest.fixture
def page(account: Account) -> Client:
    return logged_in(account.user)


def browser(service: Server, page: Client) -> httpx.Client:
    """At the server itself: the streams of all processes are asked for on its own loop."""
    cookies = {"sessionid": page.cookies["sessionid"].value}
    return httpx.Client(base_url=service.url, cookies=cookies, follow_redirects=True, timeout=PATIENCE_S)


def shown_with(words: str, service: Server, page: Client) -> str:
    """Processes tell each other once a second what streams follow."""
    with browser(service, page) as opened:
        wait_until(lambda: words in opened.get(PAGE).text)
        return opened.get(PAGE).text


def press(page: Client, service: Server, path: str, opened_at: str) -> str:
    with browser(service, page) as opened:
        (token,) = set(re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', opened.get(PAGE).text))
        fields = {"csrfmiddlewaretoken": token, "path": path, "opened_at": opened_at}
        answer = opened.post(CLOSE, data=fields)
    assert (answer.status_code, answer.url.path) == (200, PAGE)
    return answer.text


def close(page: Client, service: Server, account: Account, path: str = MARKET) -> str:
    """As the page's form would, whoever presses."""
    (at,) = (each.opened_at for each in service.run(open_streams.of_account(account.pk)) if each.path == path)
    return press(page, service, path, f"{at:.6f}")


def events_of(account: Account) -> int:
    return ControlEvent.objects.filter(account_id=account.pk, kind=EventKind.STREAM_CLOSED).count()


def test_page_shows_what_is_open_and_closes_it_for_good_and_no_other(
    service: Server, opened: Open, page: Client, account: Account, key: str, symbol: str
) -> None:
    shown_with("No stream is open", service, page)
    kept = opened(MARKET, key=token_of(page))
    kept.subscribe(symbol)
    assert "Your keys use 0 of the" in shown_with("a page of this site", service, page)
    socket = opened(ORDERFLOW, key=key, User_Agent="<b>bot</b> " + "x" * 200)
    socket.subscribe(symbol)
    text = shown_with("&lt;b&gt;bot&lt;/b&gt;", service, page)
    assert "x" * 120 not in text
    assert f"<dt>Symbols</dt><dd>{symbol}</dd>" in text
    assert f"Your keys use 1 of the {account.tier.streams} streams" in text
    (issued,) = account.keys.all()
    assert f"{issued.name} <code>{issued.prefix}…</code>" in text
    assert "<dt>Address</dt><dd>127.0.0.1</dd>" in text
    socket.ask({"action": "unsubscribe", "symbols": [symbol]})
    shown_with("<dt>Symbols</dt><dd>none now</dd>", service, page)
    opened_at = dict(re.findall(FIELDS, text))
    assert opened_at.keys() == {MARKET, ORDERFLOW}
    press(page, service, ORDERFLOW, opened_at[ORDERFLOW])
    refused = socket.refused()
    assert (code_of(refused), socket.closed) == (CLOSED, 4410)
    assert "settings panel" in refused["error"]["message"]
    assert kept.is_open
    assert [stream.path for stream in service.run(open_streams.of_account(account.pk))] == [MARKET]
    close(page, service, account)
    assert code_of(kept.refused()) == CLOSED


def test_nobody_closes_the_streams_of_others_nor_what_is_not_open(
    service: Server, opened: Open, page: Client, account: Account, key: str, symbol: str
) -> None:
    socket, eve = opened(key=key), make_account(tier=account.tier)
    socket.subscribe(symbol)
    gone = "This stream is no longer open; nothing was done."
    assert gone in close(logged_in(eve.user), service, account)
    for path, opened_at in ((MARKET, "1700000000.000001"), ("/nowhere", "0"), (ORDERFLOW, "-1")):
        assert gone in press(page, service, path, opened_at)
    for fields in ({}, {"path": MARKET}, {"path": MARKET, "opened_at": "soon"}):
        assert page.post(CLOSE, fields)["Location"] == PAGE
    assert page.get(CLOSE).status_code == 405
    assert (events_of(eve), events_of(account)) == (0, 0)
    # Its own comes after it, and is heard in the same order.
    other = opened(key=make_key(eve))
    other.subscribe(symbol)
    told = close(logged_in(eve.user), service, eve)
    assert f"The stream on {MARKET} closes within 2 seconds." in told
    assert code_of(other.refused()) == CLOSED
    assert (events_of(eve), socket.is_open) == (1, True)
