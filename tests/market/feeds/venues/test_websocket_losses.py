"""Every way to lose a WebSocket venue is a sentence that names the setting, and tried again in its time."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import pytest

from core.http import HttpFailed
from market.engine.feeds.venues.kraken import KrakenFeed
from market.engine.feeds.venues.venue_history import MinutesRequest
from market.engine.feeds.venues.websocket_feed import MAX_BYTES
from market.prices.candles import PriceBar
from tests.local_http import Request
from tests.market.feeds.receivers import RecordingReceiver, Waits, running

from .fakes.binance import FakeBinance
from .fakes.http_venue import HttpVenue, Reply
from .fakes.kraken import FakeKraken
from .fakes.venue import NOON_MS, make_pace


async def loss_at(url: str, waits: Waits | None = None, **pace: Any) -> str:
    """Why a feed with this address says it is lost."""
    receiver, waits = RecordingReceiver(), waits or Waits()
    feed = KrakenFeed({"EURUSD": "EUR/USD"}, url, "", make_pace(sleep=waits, chance=lambda: 0.0, **pace))
    async with running(feed, receiver):
        await receiver.until_lost()
    return receiver.losses[0]


@pytest.fixture
async def kraken() -> AsyncIterator[FakeKraken]:
    async with FakeKraken() as fake:
        yield fake


@pytest.mark.parametrize("url", ["https://ws.example/v2", "ws.example", "", "ws://ws.example:port"])
async def test_address_of_no_websocket_is_told_and_tried_seldom(url: str) -> None:
    waits = Waits()

    assert (
        await loss_at(url, waits, longest_retry_s=60.0)
        == f"{url} (KRAKEN_WS_URL) is not the address of a WebSocket"
    )
    assert waits.seconds == [60.0]


async def test_address_where_nobody_listens_is_told() -> None:
    lost = await loss_at("ws://127.0.0.1:1")

    assert lost.startswith("ws://127.0.0.1:1 (KRAKEN_WS_URL) cannot be reached: ")


async def test_server_that_never_answers_is_given_up() -> None:
    async def never(_: Request, reply: Reply) -> None:
        await reply.left()

    async with HttpVenue(never) as venue:
        url = venue.url.replace("http", "ws")
        lost = await loss_at(url, open_s=0.05)

    assert lost == f"{url} (KRAKEN_WS_URL) did not answer in time"


@pytest.mark.parametrize(
    ("status", "waited"),
    [
        (HTTPStatus.UNAUTHORIZED, 60.0),
        (HTTPStatus.TOO_MANY_REQUESTS, 60.0),
        (HTTPStatus.SERVICE_UNAVAILABLE, 0.001),
    ],
)
async def test_refused_handshake_is_told_and_tried_again_in_its_time(
    kraken: FakeKraken, status: HTTPStatus, waited: float
) -> None:
    kraken.refuses_with, waits = status, Waits()
    url = f"ws://127.0.0.1:{kraken.port}"

    lost = await loss_at(url, waits, longest_retry_s=60.0)

    assert lost == f"{url} (KRAKEN_WS_URL) refused the connection with HTTP {status.value}"
    assert waits.seconds == [waited]


async def test_venues_own_reason_is_passed_on(kraken: FakeKraken) -> None:
    receiver = RecordingReceiver()

    async with running(kraken.make_feed(), receiver):
        await kraken.visited()
        await kraken.close(1001, "maintenance")
        await receiver.until_lost()

    assert receiver.losses == ["Kraken closed the connection: 1001 (going away) maintenance"]


async def test_torn_connection_is_told_as_one(kraken: FakeKraken) -> None:
    receiver = RecordingReceiver()

    async with running(kraken.make_feed(), receiver):
        await kraken.visited()
        await kraken.reset()
        await receiver.until_lost()

    assert receiver.losses == ["the connection to Kraken broke off"]


async def test_message_beyond_all_bounds_is_a_loss(kraken: FakeKraken) -> None:
    receiver = RecordingReceiver()

    async with running(kraken.make_feed(), receiver):
        await kraken.visited()
        await kraken.send(b"x" * (MAX_BYTES + 1))
        await receiver.until_lost()

    assert receiver.losses[0].startswith("the connection to Kraken was given up: 1009 (message too big)")


async def test_server_that_announces_its_shutdown_is_left() -> None:
    receiver = RecordingReceiver()

    async with FakeBinance() as binance, running(binance.make_feed(), receiver):
        await binance.visited()
        await binance.send(b'{"e":"serverShutdown","E":1770123456789}')
        await binance.visited(2)

    assert receiver.losses == ["Binance shuts this server down"]


async def test_venue_without_heartbeats_is_asked_for_a_sign_of_life() -> None:
    receiver = RecordingReceiver()

    async with FakeBinance() as binance, running(binance.make_feed(probe_s=0.01), receiver):
        # The answer to the subscription, and to three probes.
        await receiver.until_takes(4)

    assert receiver.losses == []


async def test_history_that_cannot_be_had_is_one_line_with_its_address(
    kraken: FakeKraken, caplog: pytest.LogCaptureFixture
) -> None:
    receiver = RecordingReceiver(dict.fromkeys(kraken.symbols, NOON_MS))
    kraken.has_broken_history = True

    with caplog.at_level(logging.WARNING):
        async with running(kraken.make_feed(), receiver):
            await kraken.visited()
            await kraken.send(kraken.quote("EUR/USD", 1.08, 1.0802, NOON_MS))
            await receiver.until_ticks(1)

    assert caplog.messages == [
        f"Kraken: no history of EURUSD, XAUUSD from http://127.0.0.1:{kraken.port} (KRAKEN_REST_URL): "
        "the answer was 503"
    ]


class KrakenWithoutHistory(KrakenFeed):
    """Gives another reason for each symbol."""

    async def history(self, wanted: MinutesRequest) -> list[PriceBar]:
        raise HttpFailed(f"not {wanted.name}")


async def test_each_reason_against_history_is_told_with_its_own_instruments(
    kraken: FakeKraken, caplog: pytest.LogCaptureFixture
) -> None:
    receiver = RecordingReceiver(dict.fromkeys(kraken.symbols, NOON_MS))
    ws_url, rest_url = kraken.settings.values()
    feed = KrakenWithoutHistory(kraken.symbols, ws_url, rest_url, make_pace())

    with caplog.at_level(logging.WARNING):
        async with running(feed, receiver):
            await kraken.visited()
            await kraken.send(kraken.quote("EUR/USD", 1.08, 1.0802, NOON_MS))
            await receiver.until_ticks(1)

    reasons = [message.partition(" from ")[0] + message.rpartition(")")[2] for message in caplog.messages]
    assert reasons == [
        "Kraken: no history of EURUSD: not EUR/USD",
        "Kraken: no history of XAUUSD: not PAXG/USD",
    ]
