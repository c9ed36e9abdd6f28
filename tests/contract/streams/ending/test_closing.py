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

PAGE, CLOSE = "/settings/streams", "/settings/streams/close"
FIELDS = r'name="path" value="([^"]+)">\s*<input type="hidden" name="opened_at" value="([\d.]+)"'


@pytest.fixture
def page(account: Account) -> Client:
    return logged_in(account.user)


def close(client: Client, service: Server, account: Account, path: str) -> str:
    """As the page's form would, whoever presses."""
    (at,) = (each.opened_at for each in service.run(open_streams.of_account(account.pk)) if each.path == path)
    return press(client, service, path, f"{at:.6f}")


def press(client: Client, service: Server, path: str, opened_at: str) -> str:
    """At the server itself: the streams of all processes are asked for on its own loop."""
    cookies = {"sessionid": client.cookies["sessionid"].value}
    with httpx.Client(
        base_url=service.url, cookies=cookies, follow_redirects=True, timeout=PATIENCE_S
    ) as browser:
        (token,) = set(re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', browser.get(PAGE).text))
        fields = {"csrfmiddlewaretoken": token, "path": path, "opened_at": opened_at}
        answer = browser.post(CLOSE, data=fields)
    assert (answer.status_code, answer.url.path) == (200, PAGE)
    return answer.text


def events_of(account: Account) -> int:
    return ControlEvent.objects.filter(account_id=account.pk, kind=EventKind.STREAM_CLOSED).count()


def test_stream_is_closed_for_good_and_the_others_are_not(
    service: Server, opened: Open, page: Client, account: Account, key: str, symbol: str
) -> None:
    sockets = {path: opened(path, key=key) for path in (MARKET, ORDERFLOW)}
    for socket in sockets.values():
        socket.subscribe(symbol)
    close(page, service, account, MARKET)
    refused = sockets[MARKET].refused()
    assert (code_of(refused), sockets[MARKET].closed) == (("stream_closed", True, False), 4410)
    assert "settings panel" in refused["error"]["message"]
    assert sockets[ORDERFLOW].is_open
    assert [stream.path for stream in service.run(open_streams.of_account(account.pk))] == [ORDERFLOW]


def test_nobody_closes_the_streams_of_others(
    service: Server, opened: Open, page: Client, account: Account, key: str, symbol: str
) -> None:
    socket, eve = opened(key=key), make_account(tier=account.tier)
    socket.subscribe(symbol)
    assert "This stream is no longer open; nothing was done." in close(
        logged_in(eve.user), service, account, MARKET
    )
    assert events_of(eve) == 0
    # Its own comes after it, and is heard in the same order.
    other = opened(key=make_key(eve))
    other.subscribe(symbol)
    close(logged_in(eve.user), service, eve, MARKET)
    assert other.refused()["error"]["code"] == "stream_closed"
    assert socket.is_open


@pytest.mark.parametrize("fields", [{}, {"path": MARKET}, {"path": MARKET, "opened_at": "soon"}])
def test_nonsense_closes_nothing(page: Client, fields: dict[str, str]) -> None:
    before = ControlEvent.objects.count()
    assert page.post(CLOSE, fields)["Location"] == PAGE
    assert ControlEvent.objects.count() == before


def test_a_stream_that_is_not_open_is_not_written_of(
    service: Server, opened: Open, page: Client, account: Account, key: str, symbol: str
) -> None:
    socket = opened(key=key)
    socket.subscribe(symbol)
    for path, opened_at in ((MARKET, "1700000000.000001"), ("/nowhere", "0"), (ORDERFLOW, "-1")):
        assert "This stream is no longer open" in press(page, service, path, opened_at)
    assert (events_of(account), socket.is_open) == (0, True)
    assert f"The stream on {MARKET} closes within 2 seconds." in close(page, service, account, MARKET)
    assert events_of(account) == 1


def test_page_names_the_client_and_follows_its_symbols(
    service: Server, opened: Open, page: Client, key: str, symbol: str
) -> None:
    socket = opened(key=key, User_Agent="<b>bot</b> " + "x" * 200)
    socket.subscribe(symbol)
    text = shown_with("&lt;b&gt;bot&lt;/b&gt;", service, page)
    assert "x" * 120 not in text
    socket.ask({"action": "unsubscribe", "symbols": [symbol]})
    shown_with("<dt>Symbols</dt><dd>none now</dd>", service, page)


def test_stream_of_a_page_is_listed_and_closed(
    service: Server, opened: Open, page: Client, account: Account, symbol: str
) -> None:
    socket = opened(key=token_of(page))
    socket.subscribe(symbol)
    text = shown(service, page)
    assert "Your keys use 0 of the" in text
    assert "a page of this site" in text
    close(page, service, account, MARKET)
    assert code_of(socket.refused()) == ("stream_closed", True, False)


def test_closing_takes_a_post(page: Client) -> None:
    assert page.get(CLOSE).status_code == 405


def shown(service: Server, page: Client) -> str:
    """By the server itself: the streams of all processes are asked for on its own loop."""
    cookies = {"sessionid": page.cookies["sessionid"].value}
    return httpx.get(f"{service.url}{PAGE}", cookies=cookies, timeout=PATIENCE_S).text


def shown_with(words: str, service: Server, page: Client) -> str:
    """Processes tell each other what streams follow once a second."""
    wait_until(lambda: words in shown(service, page))
    return shown(service, page)


def test_page_shows_what_is_open_and_closes_it(
    service: Server, opened: Open, page: Client, account: Account, key: str, symbol: str
) -> None:
    assert "No stream is open" in shown(service, page)
    socket = opened(ORDERFLOW, key=key)
    socket.subscribe(symbol)
    text = shown_with(f"<dt>Symbols</dt><dd>{symbol}</dd>", service, page)
    assert f"Your keys use 1 of the {account.tier.streams} streams" in text
    (issued,) = account.keys.all()
    assert f"{issued.name} <code>{issued.prefix}…</code>" in text
    assert "<dt>Address</dt><dd>127.0.0.1</dd>" in text
    ((path, opened_at),) = re.findall(FIELDS, text)
    assert path == ORDERFLOW
    press(page, service, path, opened_at)
    assert code_of(socket.refused()) == ("stream_closed", True, False)
    assert "No stream is open" in shown(service, page)
