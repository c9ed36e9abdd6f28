"""The page on which people publish: who may, what it refuses and where it says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from html import unescape
from threading import Event
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.db import connection, transaction
from django.test import Client

from accounts.models import User
from core.version import known_rules
from instruments.catalogue import catalogue
from instruments.models import Instrument, WithheldSource
from market import runtime as market
from signals_feed.models import Signal
from signals_feed.publishing import actions
from signals_feed.publishing.actions import cancel
from signals_feed.publishing.pages import FILLED_LATER, closed_words
from tests.accounts.panel.test_look import assert_is_ours
from tests.factories import NOON, make_calendar, make_instrument, make_signal, make_user, put_quote
from tests.patience import PATIENCE_S
from tests.signals_feed.filled_signals import make_filled
from tests.signals_feed.ledger.by_hand import add_now
from tests.signals_feed.published_signals import make_publisher

pytestmark = pytest.mark.django_db
PAGE, LIVE = "/settings/signals", "/settings/signals/live"
ACTIVE = {"state": "active", "badge": "active"}
TERMS = {
    "symbol": "EURUSD",
    "direction": "buy",
    "entry": "1.08424",
    "stop_loss": "1.0810",
    "take_profit": "1.0900",
}


@pytest.fixture(autouse=True)
def _market() -> Iterator[None]:
    make_instrument("EURUSD")
    put_quote("EURUSD", 1.0841, 1.08424)
    yield
    market.prices.clear()


def logged_in(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


@pytest.fixture
def anna() -> User:
    return make_publisher()


@pytest.fixture
def page(anna: User) -> Client:
    return logged_in(anna)


def send(page: Client, **changes: str) -> Any:
    return page.post(PAGE, TERMS | {"token": str(uuid4())} | changes)


def shown(answer: Any) -> str:
    return unescape(answer.text)


def test_who_may_not_publish_is_told_how_to_become_a_publisher() -> None:
    for path in (PAGE, LIVE):
        assert Client().get(path)["Location"].startswith("/accounts/login/?next=/settings/signals")
    page = logged_in(make_user("ada"))
    answer = page.get(PAGE)
    assert (answer.status_code, "How to become a publisher" in answer.text) == (200, True)
    assert send(page).status_code == 403
    assert page.get(LIVE).status_code == 403
    assert not Signal.objects.exists()


def test_pages_are_ours_and_never_cached(page: Client) -> None:
    for answer in (page.get(PAGE), logged_in(make_user()).get(PAGE)):
        assert_is_ours(answer.text)
        assert "no-store" in answer["Cache-Control"]


def test_form_without_its_token_against_forgery_is_refused(anna: User) -> None:
    assert send(logged_in(anna, enforce_csrf_checks=True)).status_code == 403


def test_empty_entry_is_the_market_price_of_the_moment(page: Client) -> None:
    told = page.get(LIVE, TERMS | {"entry": ""}).json()["preview"]
    assert (told["is_at_market"], told["entry"], told["faults"]) == (True, "1.08424", {})
    assert "is_at_market" not in page.get(LIVE, TERMS).json()["preview"]
    put_quote("EURUSD", 1.0848, 1.08494)
    assert send(page, entry="").status_code == 302
    assert Signal.objects.get().entry == Signal.objects.get().tradable_price == Decimal("1.08494")


def test_a_form_publishes_once_and_says_so_and_another_form_is_another_signal(
    page: Client, anna: User
) -> None:
    token = str(uuid4())
    for _ in range(2):
        answer = page.post(PAGE, TERMS | {"token": token}, follow=True)
        signal = Signal.objects.get()
        assert (signal.user, signal.direction, signal.entry) == (anna, "buy", Decimal("1.08424"))
        assert answer.redirect_chain == [(f"{PAGE}?symbol=EURUSD", 302)]
        assert "Published: buy EURUSD." in answer.text
        assert str(signal.pk) in answer.text
    changed = send(page, token=token, stop_loss="1.07")
    assert changed.status_code == 400
    assert "This form has already published a buy of EURUSD" in changed.text
    send(page)
    assert Signal.objects.count() == 2


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"entry": "1.0842"}, "entry", "may not be below the ask, which is 1.08424"),
        ({"entry": "dear"}, "entry", "This is not a price. Write it like 1.0842."),
        ({"stop_loss": ""}, "stop_loss", "required"),
        ({"direction": "hold"}, "direction", "hold"),
        ({"symbol": "NOPE"}, "symbol", "NOPE"),
    ],
)
def test_refusal_stands_beside_its_field_and_what_was_typed_is_kept(
    page: Client, changes: dict[str, str], field: str, words: str
) -> None:
    answer = send(page, **changes)
    assert answer.status_code == 400
    (error,) = answer.context["form"].errors[field]
    assert words in error
    assert f'id="id_{field}_error"' in answer.text
    assert f'aria-describedby="id_{field}' in answer.text
    assert f'value="{changes.get("entry", TERMS["entry"])}"' in answer.text
    assert not Signal.objects.exists()


def test_page_begins_with_an_instrument_that_trades_now_and_refuses_others_in_words(page: Client) -> None:
    make_instrument("AAPL", calendar=make_calendar("never", "Mon-Mon 00:00-00:01"))
    put_quote("AAPL", at_ms=1)
    text = page.get(PAGE).text
    assert '<option value="EURUSD" selected>' in text
    assert "<dd data-bid>1.08410</dd>" in text
    assert "<dd data-ask>1.08424</dd>" in text
    answer = send(page, symbol="AAPL")
    assert answer.status_code == 400
    assert "AAPL" in answer.context["form"].errors["symbol"][0]


def test_page_opens_before_any_instrument_is_there(page: Client) -> None:
    Instrument.objects.all().delete()
    catalogue.load_now()
    assert page.get(PAGE).status_code == 200


def test_live_answer_has_the_quote_and_what_closing_would_earn(page: Client, anna: User) -> None:
    signal, _ = make_signal(user=anna, stop_loss=Decimal("1.0832")), make_signal()
    told = page.get(f"{LIVE}?symbol=EURUSD").json()
    assert told["quote"].pop("age_ms") >= 0
    assert told["quote"] == {
        **{"symbol": "EURUSD", "state": "open", "why": ""},
        **{"bid": "1.08410", "ask": "1.08424", "spread": "0.00014"},
    }
    now = {"price": "1.08410", "gain": "−1.0\xa0pips", "r": "−0.10\xa0R", "tone": "loss"}
    assert told["signals"] == [{"id": str(signal.pk)} | now | ACTIVE]


def test_nobody_reads_withheld_prices_off_their_own_signals(page: Client, anna: User) -> None:
    signal = make_signal(user=anna, stop_loss=Decimal("1.0832"))
    Instrument.objects.update(source="kraken")
    WithheldSource.objects.create(name="kraken", why="Its terms.")
    catalogue.load_now()
    assert page.get(f"{LIVE}?symbol=EURUSD").json() == {
        "quote": None,
        "signals": [{"id": str(signal.pk)} | ACTIVE],
        "preview": {},
    }
    assert "1.08410" not in page.get(PAGE).text


@pytest.mark.parametrize("symbol", ["", "NOPE", "eurusd"])
def test_live_answer_of_no_instrument_has_no_quote(page: Client, symbol: str) -> None:
    assert page.get(f"{LIVE}?symbol={symbol}").json() == {"quote": None, "signals": [], "preview": {}}


def test_preview_is_computed_as_the_result_will_be(page: Client) -> None:
    told = page.get(LIVE, TERMS | {"entry": "1.0850"}).json()["preview"]
    assert told == {
        "faults": {},
        **{"entry": "1.08500", "stop_loss": "1.08100", "take_profit": "1.09000", "paid": "1.08500"},
        "risk": {"r": "−1.00\xa0R", "gain": "−40.0\xa0pips", "percent": "−0.37%"},
        "reward": {"r": "+1.25\xa0R", "gain": "+50.0\xa0pips", "percent": "+0.46%"},
        "ratio": "1 : 1.25",
    }


STOP_FAULT = {"stop_loss": "The stop of a buy must be below the entry."}


def test_each_field_says_what_is_wrong_before_the_others_are_typed(page: Client) -> None:
    def faults(**typed: str) -> dict[str, str]:
        asked = {"symbol": "EURUSD", "direction": "buy"} | typed
        found: dict[str, dict[str, str]] = page.get(LIVE, asked).json()["preview"]
        return found.get("faults", {})

    assert faults() == {}
    assert faults(entry="abc") == {"entry": "This is not a price. Write it like 1.08424."}
    assert faults(stop_loss="1.0900") == faults(entry="1.0850", stop_loss="1.0900") == STOP_FAULT
    told = faults(entry="1.07", stop_loss="-1", take_profit="1.0600")
    assert list(told) == ["entry", "stop_loss", "take_profit"]


@pytest.mark.parametrize("typed", ["", "1,08", "x", "NaN", "Infinity", "1e999999999", "1e0"])
def test_nothing_is_previewed_before_all_prices_are_numbers(page: Client, typed: str) -> None:
    told = page.get(LIVE, TERMS | {"stop_loss": typed}).json()["preview"]
    assert "risk" not in told


BITCOIN = {"symbol": "BTCUSD", "entry": "87,352.16", "stop_loss": "86,000.00", "take_profit": "1,100,000.50"}


@pytest.fixture
def bitcoin() -> None:
    make_instrument("BTCUSD", type="crypto", digits=2)
    put_quote("BTCUSD", 87350.02, 87352.16)


def test_prices_are_taken_as_the_page_writes_them(page: Client, bitcoin: None) -> None:
    told = page.get(LIVE, TERMS | BITCOIN).json()["preview"]
    assert (told["faults"], told["entry"], told["take_profit"]) == ({}, "87,352.16", "1,100,000.50")
    # What is not counted in pips is not told twice.
    assert (told["risk"]["gain"], told["risk"]["percent"]) == ("−1.55%", "")
    assert send(page, **BITCOIN).status_code == 302
    signal = Signal.objects.get()
    assert (signal.entry, signal.take_profit) == (Decimal("87352.16"), Decimal("1100000.5"))


@pytest.mark.parametrize("typed", ["1,15874", "1,158", "87,35.16", ",352.16", "87,352,16", "87.352,16"])
def test_any_other_comma_is_no_price(page: Client, bitcoin: None, typed: str) -> None:
    told = page.get(LIVE, TERMS | BITCOIN | {"entry": typed}).json()["preview"]
    assert told["faults"]["entry"] == "This is not a price. Write it like 87352.16."
    assert "This is not a price." in shown(send(page, **BITCOIN | {"entry": typed}))
    assert not Signal.objects.exists()


def test_stale_quote_and_closed_market_say_why_nothing_can_be_published(page: Client) -> None:
    put_quote("EURUSD", at_ms=1)
    assert "no fresh price of EURUSD" in shown(page.get(f"{PAGE}?symbol=EURUSD"))
    make_instrument("AAPL", calendar=make_calendar("weekly", "Wed-Wed 12:00-12:30"))
    put_quote("AAPL", at_ms=1)
    with time_machine.travel(NOON - timedelta(days=1, hours=3), tick=False):
        why = page.get(f"{LIVE}?symbol=AAPL").json()["quote"]["why"]
    opens = "Wed\xa018\xa0Nov,\xa012:00\xa0UTC, in\xa01\xa0d\xa03\xa0h"
    assert why == f"The market of AAPL is closed. It opens {opens}."


def test_own_signal_is_closed_by_hand_at_the_price_of_now(page: Client, anna: User) -> None:
    signal, another = make_signal(user=anna), make_signal()
    assert page.get(f"{PAGE}/{signal.pk}/close").status_code == 405
    assert page.post(f"{PAGE}/{another.pk}/close").status_code == 404
    assert Signal.objects.active().count() == 2
    answer = page.post(f"{PAGE}/{signal.pk}/close", follow=True)
    signal.refresh_from_db()
    assert (signal.close_reason, signal.close_price) == ("manual", Decimal("1.0841"))
    assert "Closed: buy EURUSD, −1.0\xa0pips." in shown(answer)
    assert "closed by the publisher" in answer.text
    assert "already been closed" in shown(page.post(f"{PAGE}/{signal.pk}/close", follow=True))


def test_signal_that_staff_cancelled_says_so(page: Client, anna: User) -> None:
    cancel(make_signal(user=anna), reason="Fat finger", by="boss")
    text = page.get(PAGE).text
    assert "It was cancelled, and closes at the next tradable price.<br>The reason: “Fat finger”</p>" in text
    assert "Yes, close it" not in text


def test_form_and_confirmation_say_how_it_is_filled_before_the_first_is_published_so(
    page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert FILLED_LATER not in page.get(PAGE).text
    monkeypatch.setattr(known_rules, "asked", [lambda: 2])
    text = page.get(PAGE).text
    form, confirmation = text.split("<dialog")
    assert (FILLED_LATER in form, FILLED_LATER in confirmation) == (True, True)
    assert "at the current price" not in confirmation


def test_own_signal_shows_its_fill_and_closes_at_the_next_price(page: Client, anna: User) -> None:
    signal = make_filled(anna)
    text = shown(page.get(PAGE))
    assert re.search(r"<dt>Fill</dt><dd[^>]*>1\.08440<", text)
    assert "of the next price, at least one second from now, whatever the result." in text
    add_now("close_request", signal.pk)
    assert "You asked to close it." in shown(page.get(PAGE))
    (now,) = page.get(LIVE).json()["signals"]
    told = now["fill"], now["state"], now["r"]
    assert told == ("1.08440", "asked to close", "\N{MINUS SIGN}0.09\xa0R")


def test_request_to_close_is_not_told_as_a_close() -> None:
    assert closed_words(make_filled()).startswith("You asked to close: buy EURUSD.")


@pytest.mark.services
@pytest.mark.django_db(transaction=True)
def test_request_that_waits_for_a_slow_one_of_the_same_publisher_is_told_to_try_again(
    anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "WAITING_S", 0.1)
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout = 100")
    is_held, may_end = Event(), Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                User.objects.select_for_update(no_key=True).get(pk=anna.pk)
                is_held.set()
                may_end.wait(PATIENCE_S)
        finally:
            connection.close()

    page = logged_in(anna, raise_request_exception=False)
    with ThreadPoolExecutor(1) as threads:
        holding = threads.submit(hold)
        try:
            assert is_held.wait(PATIENCE_S)
            answer = send(page)
            # It was still held.
            assert (holding.done(), answer.status_code, answer["Retry-After"] != "") == (False, 503, True)
        finally:
            may_end.set()
    connection.close()
    assert send(page).status_code == 302
    assert Signal.objects.count() == 1
