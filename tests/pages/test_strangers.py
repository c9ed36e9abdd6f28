"""Pages for people who are not logged in: nobody gets what is somebody's own, and nobody makes them dear."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.core.signals import request_started
from django.http import HttpRequest, HttpResponse
from django.urls import resolve, reverse

from core.cached import Cached
from pages import strangers
from pages.handler import end_page
from pages.strangers import KEPT_S, ROUTE, SHARE, SHARED, WORK_S, KeptPages, StrangersWork, kept_pages
from pages.terminal import kept_watchlist, recent_watchlist
from signals_feed.models import Signal
from signals_feed.publishers.standings import kept_standings, recent_standings
from tests.client import Server
from tests.factories import make_signal, make_user
from tests.patience import PATIENCE_S, wait_until

PASSWORD = "a long walk 7"
LOGGED_IN = " in as zelda."
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
LOGIN = "/accounts/login/"
Ask = Callable[..., httpx.Response]


@pytest.fixture
def ask(server: Server) -> Ask:
    """A stranger asks, who brings nothing along."""

    def get(path: str, address: str = "127.0.0.1", **headers: str) -> httpx.Response:
        transport = httpx.HTTPTransport(local_address=address)
        with httpx.Client(base_url=server.url, timeout=PATIENCE_S, transport=transport) as client:
            return client.get(path, headers=headers)

    return get


@pytest.fixture
def session(server: Server, ask: Ask) -> str:
    """The cookie of Zelda, who has just logged in; the next page tells her so."""
    make_user("zelda", PASSWORD)
    with httpx.Client(base_url=server.url, timeout=PATIENCE_S) as client:
        fields = {"login": "zelda", "password": PASSWORD, "csrfmiddlewaretoken": token_in(client.get(LOGIN))}
        assert client.post(LOGIN, data=fields).status_code == 302
        return "; ".join(f"{name}={value}" for name, value in client.cookies.items())


def token_in(answer: httpx.Response) -> str:
    found = TOKEN.search(answer.text)
    assert found
    return found[1]


@pytest.fixture
def signal(server: Server) -> Signal:
    return make_signal(user=make_user("anna"))


@pytest.fixture
def addresses(signal: Signal) -> dict[str, str]:
    of: dict[str, list[object]] = {"publishers": [], "signal_page": [signal.pk]}
    return {name: reverse(name, args=of.get(name, ["anna"])) for name in SHARED}


@pytest.mark.parametrize("name", sorted(SHARED))
def test_page_of_somebody_who_is_logged_in_is_nobody_elses(
    name: str, session: str, addresses: dict[str, str], ask: Ask
) -> None:
    path = addresses[name]
    own = ask(path, cookie=session)
    is_page = "text/html" in own.headers["Content-Type"]
    assert (LOGGED_IN in own.text, TOKEN.search(own.text) is not None) == (is_page, is_page)
    assert all("zelda" not in each.text and not TOKEN.search(each.text) for each in (ask(path), ask(path)))
    assert ("zelda" in ask(path, cookie=session).text) is is_page


def test_form_is_nobody_elses_even_on_a_page_that_may_be_kept(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strangers, "SHARED", {"account_login"})
    assert token_in(ask(LOGIN)) != token_in(ask(LOGIN))


def test_strangers_get_what_was_made_for_one_of_them(
    signal: Signal, addresses: dict[str, str], ask: Ask
) -> None:
    path = addresses["publisher_page"]
    before = ask(path)
    make_signal(user=signal.user)
    assert ask(path).text == before.text
    others = (ask(f"{path}?page=1"), ask(path, cookie="theme=dark"), ask(path, host="localhost"))
    assert all("2 active" in each.text for each in others)


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_page_that_ran_out_is_made_again_by_the_first_of_many(
    addresses: dict[str, str], ask: Ask, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_pages, "_now", clock)
    ask(addresses["publisher_page"])
    clock.now_s += KEPT_S
    others: list[bool] = []

    def ask_at_once(scope: dict[str, Any], **_: Any) -> None:
        others.append(kept_pages.get(scope) is not None)

    request_started.connect(ask_at_once)
    try:
        ask(addresses["publisher_page"])
    finally:
        request_started.disconnect(ask_at_once)
    assert others == [True]


def asked(query: bytes = b"") -> dict[str, Any]:
    path = "/publishers"
    return {
        **{"method": "GET", "scheme": "http", "path": path, "query_string": query, "headers": []},
        ROUTE: path,
    }


def put(kept: KeptPages, scope: dict[str, Any], text: str, status: int = 200) -> None:
    request = HttpRequest()
    request.resolver_match = resolve(scope["path"])
    kept.put(scope, request, HttpResponse(text, status=status))


def text_of(kept: KeptPages, scope: dict[str, Any]) -> str | None:
    found = kept.get(scope)
    return None if found is None else found.text


def test_page_is_kept_for_seconds_and_once_more_for_others_while_it_is_made_again(clock: Clock) -> None:
    kept, scope = KeptPages(clock), asked()
    put(kept, scope, "old")
    clock.now_s += KEPT_S - 0.01
    assert text_of(kept, scope) == "old"
    clock.now_s += 0.01
    assert text_of(kept, scope) is None
    kept.renew(scope)
    assert text_of(kept, scope) == "old"
    put(kept, scope, "away", status=503)
    assert text_of(kept, scope) is None


def test_page_that_is_much_older_is_sent_to_nobody_while_it_is_made_again(clock: Clock) -> None:
    kept, scope = KeptPages(clock), asked()
    put(kept, scope, "old")
    for _ in range(2):
        clock.now_s += KEPT_S
        kept.renew(scope)
    assert text_of(kept, scope) is None


def test_pages_that_are_kept_take_no_more_memory_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "MOST_BYTES", 3 * strangers.SIZE_OF_REST + 100)
    kept, scopes = KeptPages(), [asked(b"%d" % number) for number in range(4)]
    for scope in (*scopes, scopes[2]):
        put(kept, scope, "")
    assert [text_of(kept, scope) for scope in scopes] == [None, "", "", ""]
    # What was asked is kept as well.
    put(kept, long := asked(b"?" * strangers.MOST_BYTES), "")
    assert text_of(kept, long) is None


@pytest.mark.parametrize("path", [LOGIN, "/publishers"])
def test_address_that_costs_too_much_waits_and_nobody_else_does(
    path: str, session: str, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strangers, "WORK_S", 0.0)
    monkeypatch.setattr(strangers, "SHARE", 1e-9)
    assert ask("/settings/keys", address="127.0.0.3", cookie=session).status_code == 200
    wait_until(lambda: ask(path, address="127.0.0.3").status_code == 429)
    refused = ask(LOGIN, address="127.0.0.3", cookie="sessionid=nobodys", accept="application/json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert int(refused.headers["Retry-After"]) >= 1
    assert ask(LOGIN, address="127.0.0.2").status_code == 200
    assert ask("/settings/keys", address="127.0.0.3", cookie=session).status_code == 200
    # A proxy that nobody named as trusted would have everybody refused.
    assert [ask(path).status_code for _ in range(3)] == [200, 200, 200]


def test_what_operators_measure_is_no_strangers_work(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(strangers, "WORK_S", 0.0)
    monkeypatch.setattr(strangers, "SHARE", 1e-9)
    settings.METRICS_TOKEN = "of-thirty-two-letters-or-so-many"
    # The second comes after the first was counted.
    for _ in range(2):
        scraped = ask("/metrics", address="127.0.0.4", authorization=f"Bearer {settings.METRICS_TOKEN}")
        assert scraped.status_code == 200
    assert ask(LOGIN, address="127.0.0.4").status_code == 200


def wait_of(work: StrangersWork, address: str) -> int:
    refusal = work.refusal(address)
    return 0 if refusal is None else int(refusal.headers["Retry-After"])


def test_work_is_counted_by_network_and_forgiven_with_time(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strangers, "WORK_S", WORK_S)
    monkeypatch.setattr(strangers, "SWEEP_ABOVE", 2)
    work = StrangersWork(clock)
    work.add("2001:db8::1", WORK_S)
    assert wait_of(work, "2001:db8::2") == 0
    work.add("2001:db8::2", 1.45)
    assert [wait_of(work, each) for each in ("2001:db8::1", "2001:db8:0:1::1")] == [15, 0]
    # Only those who owe nothing any more are forgotten.
    work.add("192.0.2.1", 0.1)
    clock.now_s += 1
    work.add("192.0.2.2", 0.1)
    assert wait_of(work, "2001:db8::1") == 14
    clock.now_s += 1.45 / SHARE
    assert wait_of(work, "2001:db8::1") == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("kept", "recent"), [(kept_standings, recent_standings), (kept_watchlist, recent_watchlist)]
)
def test_what_is_kept_for_all_is_no_visitors_work(
    kept: Cached[object], recent: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.thread_time", lambda: 7.0 * (kept.last is not None))
    end_page()
    recent()
    assert kept.last is not None
    assert end_page() == pytest.approx(0)
    kept.clear()
    assert end_page() == pytest.approx(-7)
