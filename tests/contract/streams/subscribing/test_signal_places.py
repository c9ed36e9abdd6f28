"""/ws/signals: the place in a reply, for who has heard of no signal yet, and what a failing replay says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from instruments.models import Instrument
from signals_feed.models import Announcement
from signals_feed.stream import signals
from tests.client import Server
from tests.contract.streams.client import Socket
from tests.contract.streams.conftest import Open
from tests.contract.streams.publishing import publish_signal
from tests.databases.queries import around_statements
from tests.factories import make_account, make_key, make_tier, make_user
from tests.signals_feed.announcing import AWAY
from tests.signals_feed.published_signals import make_published

pytestmark = pytest.mark.services

SIGNALS = "/ws/signals"


@pytest.fixture
def publisher(service: Server) -> User:
    return make_user()


def test_place_of_a_reply_brings_what_came_before_the_first_signal_was_heard(
    opened: Open, key: str, symbol: str, publisher: User
) -> None:
    place = opened(SIGNALS, key=key).subscribe(symbol)["since"]
    missed = publish_signal(symbol, publisher)
    socket = opened(SIGNALS, key=key)
    reply = socket.subscribe(symbol, since=place)
    assert (reply["recovered"], reply["since"]) == (True, place)
    assert socket.hear_of(1, "id") == [missed]
    assert opened(SIGNALS, key=key).subscribe(symbol)["since"] != place


@pytest.mark.parametrize("since", ["after:", "after:-1", "after:٣", "after:1e3", "after:" + "9" * 18])
def test_place_that_was_never_given_is_told(opened: Open, key: str, symbol: str, since: str) -> None:
    reply = opened(SIGNALS, key=key).subscribe(symbol, since=since)
    assert (reply["recovered"], reply["unrecovered"]) == (False, [symbol])


@pytest.mark.parametrize(("days", "recovered"), [(6.9, True), (7.1, False)])
def test_place_holds_while_nothing_after_it_is_older_than_seven_days(
    opened: Open, key: str, symbol: str, publisher: User, days: float, recovered: bool
) -> None:
    place = opened(SIGNALS, key=key).subscribe(symbol)["since"]
    make_published(Instrument.objects.get(symbol=symbol), published_at=timezone.now() - timedelta(days=days))
    publish_signal(symbol, publisher)
    assert opened(SIGNALS, key=key).subscribe(symbol, since=place)["recovered"] is recovered


@contextmanager
def unreadable_announcements() -> Iterator[None]:
    def refuse(statement: str, execute: Callable[[], Any]) -> Any:
        if Announcement._meta.db_table in statement and '"position" <=' in statement:
            raise AWAY
        return execute()

    with around_statements(refuse):
        yield


def test_replay_that_cannot_be_read_is_refused_instead_of_promised(
    service: Server, key: str, symbol: str, publisher: User
) -> None:
    first = publish_signal(symbol, publisher)
    publish_signal(symbol, publisher)
    service.run(signals.send_new())
    with Socket(service, SIGNALS, key=key) as socket, unreadable_announcements():
        socket.send({"action": "subscribe", "symbols": [symbol], "since": first})
        heard = socket.hear_all()
    assert [frame["type"] for frame in heard] == ["error"]
    assert socket.connection.close_code == 4500


def test_who_may_open_no_stream_makes_nobody_read(
    service: Server, opened: Open, symbol: str, publisher: User
) -> None:
    key = make_key(make_account(tier=make_tier("single", streams=1)))
    place = opened(SIGNALS, key=key).subscribe(symbol)["since"]
    publish_signal(symbol, publisher)
    service.run(signals.send_new())
    with unreadable_announcements():
        newcomer = opened(SIGNALS, key=key)
        refused = newcomer.refused({"action": "subscribe", "since": place})
    assert refused["error"]["code"] == "stream_limit_exceeded"
    assert newcomer.closed == 4429
