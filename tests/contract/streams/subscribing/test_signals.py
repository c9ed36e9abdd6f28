"""/ws/signals: new signals, closures for those who ask, and what came while a client was away."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import User
from instruments.models import Instrument
from signals_feed.models import Signal
from signals_feed.stream import signals
from tests.client import Api, Server
from tests.contract.answers import MILLISECONDS
from tests.contract.streams.client import Frame, Socket, code_of
from tests.contract.streams.conftest import Open
from tests.factories import make_account, make_instrument, make_key, make_tier, make_user
from tests.signals_feed.published_signals import close_at, put_in_feed

pytestmark = pytest.mark.services

SIGNALS = "/ws/signals"
SIGNAL = {"id", "user", "symbol", "direction", "entry", "stop_loss", "take_profit", "timestamp", "time"}
RESULT = {"pnl", "pnl_percent", "pnl_r", "close_price", "closed_at", "close_reason"}
CLOSURES = {"events": ["signal.closed"]}
Publish = Callable[..., Signal]


@pytest.fixture
def publisher(service: Server) -> User:
    return make_user()


@pytest.fixture
def hasty(publisher: User, symbol: str) -> Publish:
    """Puts a new signal of the test's own instrument into the feed."""

    def new(name: str = "", **terms: Any) -> Signal:
        prices = {"entry": "1.0842", "stop_loss": "1.081", "take_profit": "1.09", "tradable_price": "1.0842"}
        fields: dict[str, Any] = {field: Decimal(price) for field, price in prices.items()} | terms
        instrument = Instrument.objects.get(symbol=name or symbol)
        signal = Signal(instrument=instrument, user=publisher, direction="buy", **fields)
        put_in_feed(signal)
        return signal

    return new


@pytest.fixture
def published(service: Server, hasty: Publish) -> Publish:
    """The same, and the service has told it: who subscribes then does not hear it as new."""

    def new(name: str = "", **terms: Any) -> Signal:
        signal = hasty(name, **terms)
        service.run(signals.send_new())
        return signal

    return new


def closed(signal: Signal) -> Signal:
    assert close_at(signal, Decimal("1.0850"), Decimal("1.0852"))
    return signal


def ids(*signals: Signal) -> list[str]:
    return [str(signal.pk) for signal in signals]


def answered(shared: Api, symbol: str, status: str) -> Frame:
    """What REST says of the one signal of an instrument."""
    [item] = shared.ask(f"/api/signals?symbol={symbol}&status={status}").json()["items"]
    return dict(item)


# What is pushed.
def test_new_signal_is_the_signal_without_status_and_with_a_time(
    opened: Open, hasty: Publish, key: str, symbol: str, shared: Api
) -> None:
    socket = opened(SIGNALS, key=key)
    socket.subscribe(symbol)
    hasty()
    heard = socket.hear()
    assert set(heard) == SIGNAL
    assert MILLISECONDS.fullmatch(heard["timestamp"])
    assert type(heard.pop("time")) is int
    assert heard | {"status": "active"} == answered(shared, symbol, "active")


def test_closure_is_the_closed_signal_with_its_result(
    opened: Open, published: Publish, key: str, symbol: str, shared: Api
) -> None:
    signal = published()
    socket = opened(SIGNALS, key=key)
    socket.subscribe(symbol, **CLOSURES)
    closed(signal)
    heard = socket.hear()
    assert set(heard) == SIGNAL | RESULT | {"type", "status"}
    assert (heard.pop("type"), type(heard.pop("time"))) == ("signal.closed", int)
    assert heard == answered(shared, symbol, "closed")


def test_closures_come_only_to_those_who_ask(opened: Open, published: Publish, key: str, symbol: str) -> None:
    plain, asked = opened(SIGNALS, key=key), opened(SIGNALS, key=key)
    plain.subscribe(symbol)
    asked.subscribe(symbol, **CLOSURES)
    closed(published())
    second = published()
    assert [asked.hear().get("type") for _ in range(3)] == [None, "signal.closed", None]
    assert plain.hear().get("type") is None
    assert plain.hear()["id"] == str(second.pk)


def test_time_is_that_of_the_timestamp(opened: Open, published: Publish, key: str, symbol: str) -> None:
    socket = opened(SIGNALS, key=key)
    socket.subscribe(symbol)
    moment = timezone.now().replace(microsecond=118_999)
    published(published_at=moment)
    heard = socket.hear()
    assert heard["timestamp"].endswith(".118Z")
    assert heard["time"] == int(moment.timestamp()) * 1000 + 118


# What is subscribed.
@pytest.mark.parametrize("named", [{}, {"symbols": ["*"]}])
def test_all_signals_come_without_symbols(
    opened: Open, published: Publish, key: str, named: dict[str, list[str]]
) -> None:
    socket = opened(SIGNALS, key=key)
    reply = socket.ask({"action": "subscribe", **named, "id": 7})
    assert reply.pop("since").startswith("after:")
    assert reply == {"type": "subscribed", "stream": "signals", "symbols": ["*"], "rejected": [], "id": 7}
    signal = published()
    assert socket.hear()["id"] == str(signal.pk)
    assert socket.is_open


def test_all_besides_a_symbol_brings_each_signal_and_closure_once(
    opened: Open, published: Publish, key: str, symbol: str
) -> None:
    socket = opened(SIGNALS, key=key)
    socket.subscribe(symbol, **CLOSURES)
    assert socket.subscribe()["symbols"] == ["*"]
    closed(published())
    assert [socket.hear().get("type") for _ in range(2)] == [None, "signal.closed"]
    assert socket.is_open


def test_other_symbols_and_unknown_ones_bring_nothing(
    opened: Open, published: Publish, key: str, symbol: str
) -> None:
    other = make_instrument(f"OTHER{symbol}").symbol
    socket = opened(SIGNALS, key=key)
    reply = socket.subscribe(symbol.lower(), "NOSUCH")
    assert reply["symbols"] == [symbol]
    assert reply["rejected"] == [{"symbol": "NOSUCH", "code": "symbol_not_found"}]
    published(other)
    assert socket.is_open


def test_after_unsubscribe_neither_signals_nor_closures_come(
    opened: Open, published: Publish, key: str, symbol: str
) -> None:
    other = make_instrument(f"KEPT{symbol}").symbol
    socket = opened(SIGNALS, key=key)
    socket.subscribe(symbol, other, **CLOSURES)
    left = socket.ask({"action": "unsubscribe", "symbols": [symbol]})
    assert left == {"type": "unsubscribed", "symbols": [other]}
    closed(published())
    kept = published(other)
    assert socket.hear()["id"] == str(kept.pk)
    assert socket.is_open


def test_list_says_what_is_subscribed(opened: Open, key: str, symbol: str) -> None:
    socket = opened(SIGNALS, key=key)
    socket.subscribe(symbol, **CLOSURES)
    assert socket.ask({"action": "list"}) == {"type": "subscriptions", "symbols": [symbol]}


def test_bad_key_closes_with_4401_also_where_a_client_was_away(opened: Open, published: Publish) -> None:
    socket = opened(SIGNALS, key="nonsense")
    refused = socket.refused({"action": "subscribe", "since": str(published().pk)})
    assert code_of(refused) == ("invalid_api_key", True, False)
    assert socket.closed == 4401


def test_resume_is_for_numbered_streams(opened: Open, key: str) -> None:
    socket = opened(SIGNALS, key=key)
    refused = socket.refused({"action": "subscribe", "resume": {"epoch": "x", "positions": {}}, "id": 3})
    assert (refused["error"]["code"], refused["error"]["field"], refused["id"]) == (
        "invalid_message",
        "resume",
        3,
    )


def test_lag_tells_when_it_was_sent_and_there_are_no_numbers(
    opened: Open, published: Publish, key: str, symbol: str
) -> None:
    socket = opened(SIGNALS, key=key)
    reply = socket.subscribe(symbol, features=["lag", "seq"])
    assert not {"epoch", "positions"} & reply.keys()
    published()
    assert set(socket.hear()) == SIGNAL | {"sent"}


# Coming back.
def test_since_brings_what_was_published_after_it_and_then_the_new(
    opened: Open, published: Publish, key: str, symbol: str
) -> None:
    first, *missed = (published() for _ in range(4))
    socket = opened(SIGNALS, key=key)
    assert socket.subscribe(symbol, since=str(first.pk))["recovered"] is True
    assert socket.hear_of(3, "id") == ids(*missed)
    new = published()
    assert socket.hear_of(1, "id") == ids(new)
    assert socket.is_open


def test_since_the_last_signal_brings_nothing(
    opened: Open, published: Publish, key: str, symbol: str
) -> None:
    last = published()
    socket = opened(SIGNALS, key=key)
    reply = socket.subscribe(symbol, since=str(last.pk), id="back")
    assert (reply["recovered"], "unrecovered" in reply, reply["id"]) == (True, False, "back")
    assert socket.is_open


def test_since_brings_closures_in_their_place_to_those_who_ask(
    opened: Open, published: Publish, key: str, symbol: str
) -> None:
    first, second = published(), published()
    closed(second)
    closed(first)
    third = published()
    asked, plain = opened(SIGNALS, key=key), opened(SIGNALS, key=key)
    asked.subscribe(symbol, since=str(first.pk), **CLOSURES)
    plain.subscribe(symbol, since=str(first.pk))
    heard = [asked.hear() for _ in range(4)]
    assert [(frame["id"], frame.get("type")) for frame in heard] == [
        (str(second.pk), None),
        (str(second.pk), "signal.closed"),
        (str(first.pk), "signal.closed"),
        (str(third.pk), None),
    ]
    assert [set(plain.hear()) for _ in range(2)] == [SIGNAL] * 2
    assert plain.is_open


def test_since_a_closure_repeats_none(opened: Open, published: Publish, key: str, symbol: str) -> None:
    first, second = published(), published()
    closed(first)
    closed(second)
    third = published()
    socket = opened(SIGNALS, key=key)
    assert socket.subscribe(symbol, since=f"closed:{first.pk}", **CLOSURES)["recovered"] is True
    heard = [socket.hear() for _ in range(2)]
    assert [(frame["id"], frame.get("type")) for frame in heard] == [
        (str(second.pk), "signal.closed"),
        (str(third.pk), None),
    ]
    assert socket.is_open


def test_since_the_closure_of_an_active_signal_is_unknown(
    opened: Open, published: Publish, key: str, symbol: str
) -> None:
    active = published()
    reply = opened(SIGNALS, key=key).subscribe(symbol, since=f"closed:{active.pk}")
    assert (reply["recovered"], reply["unrecovered"]) == (False, [symbol])


def test_since_may_be_a_signal_of_another_symbol(
    opened: Open, published: Publish, key: str, symbol: str
) -> None:
    other = make_instrument(f"SINCE{symbol}").symbol
    last = published(other)
    missed = published()
    published(other)
    socket = opened(SIGNALS, key=key)
    assert socket.subscribe(symbol, since=str(last.pk))["recovered"] is True
    assert socket.hear_of(1, "id") == ids(missed)
    assert socket.is_open


def test_since_is_of_its_own_message(opened: Open, published: Publish, key: str, symbol: str) -> None:
    other = make_instrument(f"LATER{symbol}").symbol
    last = published()
    published(other)
    socket = opened(SIGNALS, key=key)
    socket.subscribe(symbol, since=str(last.pk))
    assert "recovered" not in socket.subscribe(other)
    assert socket.is_open


@pytest.mark.parametrize("since", ["", "nonsense", "6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01"])
def test_since_an_unknown_signal_is_told_and_starts_live(
    opened: Open, published: Publish, key: str, symbol: str, since: str
) -> None:
    published()
    socket = opened(SIGNALS, key=key)
    reply = socket.subscribe(symbol, since=since)
    assert (reply["recovered"], reply["unrecovered"]) == (False, [symbol])
    new = published()
    assert socket.hear_of(1, "id") == ids(new)


@pytest.mark.parametrize(("days", "recovered"), [(6.9, True), (7.1, False)])
def test_since_reaches_back_seven_days(
    opened: Open, published: Publish, key: str, symbol: str, days: float, recovered: bool
) -> None:
    old = published(published_at=timezone.now() - timedelta(days=days))
    published()
    reply = opened(SIGNALS, key=key).subscribe(symbol, since=str(old.pk))
    assert reply["recovered"] is recovered


def test_long_absence_is_replayed_whole(opened: Open, hasty: Publish, key: str, symbol: str) -> None:
    """More than one portion of the replay holds."""
    first = hasty()
    with transaction.atomic():
        missed = [hasty() for _ in range(510)]
    socket = opened(SIGNALS, key=key)
    socket.subscribe(symbol, since=str(first.pk))
    assert socket.hear_of(510, "id") == ids(*missed)
    assert socket.is_open


@contextmanager
def publishing(hasty: Publish, symbol: str, count: int) -> Iterator[list[str]]:
    """Beside the test, while it runs; in the end all have been published."""
    done: list[str] = []

    def work() -> None:
        for _ in range(count):
            done.extend(ids(hasty(symbol)))
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    yield done
    thread.join()


def test_client_that_is_cut_off_again_and_again_hears_each_signal_once(
    service: Server, hasty: Publish, symbol: str
) -> None:
    dice = random.Random(7)  # noqa: S311 - the same cuts in each run
    key = make_key(make_account(tier=make_tier("roomy")))
    heard = ids(hasty())
    with publishing(hasty, symbol, 150) as done:
        while len(heard) < 151:
            socket = Socket(service, SIGNALS, key=key)
            assert socket.subscribe(symbol, since=heard[-1], takeover=True)["recovered"] is True
            heard += socket.hear_of(min(dice.randrange(25), 151 - len(heard)), "id")
            # Without a word, and with others under way.
            socket.connection.socket.close()
    assert heard[1:] == done
