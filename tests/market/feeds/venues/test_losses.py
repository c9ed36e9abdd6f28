"""Every way to lose a venue is a sentence that names the setting, and never the token; it is tried again in
its time."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import pytest

from core.http import HttpFailed
from market.engine.venues.kraken import KrakenFeed
from market.engine.venues.oanda import OandaFeed
from market.engine.venues.venue_feed import MAX_BYTES
from market.engine.venues.venue_history import MinutesRequest
from market.prices.candles import PriceBar
from tests.local_http import Request
from tests.market.feeds.receivers import RecordingReceiver, Waits, running

from .fakes.binance import FakeBinance
from .fakes.http_venue import Answer, HttpVenue, Reply, never, says
from .fakes.kraken import FakeKraken
from .fakes.oanda import ACCOUNT, TOKEN
from .fakes.venue import NOON_MS, make_pace

Lost = tuple[str, list[float]]


def make_kraken(url: str, **pace: Any) -> KrakenFeed:
    return KrakenFeed({"EURUSD": "EUR/USD"}, url, "", make_pace(**pace))


def make_oanda(url: str, token: str = TOKEN, account: str = ACCOUNT, **pace: Any) -> OandaFeed:
    names = {"EURUSD": "EUR_USD", "XAUUSD": "XAU_USD"}
    return OandaFeed(names, token, account, url, url, make_pace(**pace))


async def loss_of(feed: KrakenFeed | OandaFeed) -> Lost:
    """Why a feed says it is lost, and how long it waits then."""
    receiver, waits = RecordingReceiver({"EURUSD": 0}), Waits()
    feed.pace = dataclasses.replace(feed.pace, sleep=waits, chance=lambda: 0.0)
    async with running(feed, receiver):
        await receiver.until(lambda: bool(waits.seconds))
    return receiver.losses[0], waits.seconds


async def oanda_lost(answer: Answer, **pace: Any) -> Lost:
    async with HttpVenue(answer) as venue:
        return await loss_of(make_oanda(venue.url, **pace))


@pytest.fixture
async def kraken() -> AsyncIterator[FakeKraken]:
    async with FakeKraken() as fake:
        yield fake


@pytest.mark.parametrize("url", ["https://ws.example/v2", "ws.example", "", "ws://ws.example:port"])
async def test_address_of_no_websocket_is_told_and_tried_seldom(url: str) -> None:
    sentence = f"{url} (KRAKEN_WS_URL) is not the address of a WebSocket"
    assert await loss_of(make_kraken(url, longest_retry_s=60.0)) == (sentence, [60.0])


@pytest.mark.parametrize(
    ("feed", "sentence"),
    [
        (make_kraken("ws://127.0.0.1:1"), "ws://127.0.0.1:1 (KRAKEN_WS_URL) cannot be reached: "),
        (make_oanda("http://127.0.0.1:1"), "http://127.0.0.1:1 (OANDA_STREAM_URL) cannot be reached"),
        (make_oanda("stream.example"), "stream.example (OANDA_STREAM_URL) is not an address"),
        (make_oanda("http://stream:example"), "http://stream:example (OANDA_STREAM_URL) is not an address"),
    ],
)
async def test_address_that_leads_nowhere_is_told(feed: KrakenFeed | OandaFeed, sentence: str) -> None:
    assert (await loss_of(feed))[0].startswith(sentence)


async def endless(_: Request, reply: Reply) -> None:
    await reply.begin("401 Unauthorized")
    await reply.left()


async def test_server_that_never_answers_or_never_ends_its_refusal_is_given_up() -> None:
    async with HttpVenue(never) as venue:
        url = venue.url.replace("http", "ws")
        lost, _ = await loss_of(make_kraken(url, open_s=0.05))
    assert lost == f"{url} (KRAKEN_WS_URL) did not answer in time"
    for answer in (never, endless):
        lost, _ = await oanda_lost(answer, open_s=0.05)
        assert lost.endswith("(OANDA_STREAM_URL) did not answer in time")


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
    kraken.refuses_with, url = status, f"ws://127.0.0.1:{kraken.port}"
    sentence = f"{url} (KRAKEN_WS_URL) refused the connection with HTTP {status.value}"
    assert await loss_of(make_kraken(url, longest_retry_s=60.0)) == (sentence, [waited])


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("closed", "Kraken closed the connection: 1001 (going away) maintenance"),
        ("torn", "the connection to Kraken broke off"),
        ("beyond all bounds", "the connection to Kraken was given up: 1009 (message too big)"),
    ],
)
async def test_end_of_a_connection_is_told_with_its_reason(
    kraken: FakeKraken, how: str, sentence: str
) -> None:
    receiver = RecordingReceiver()
    async with running(kraken.make_feed(), receiver):
        await kraken.visited()
        match how:
            case "closed":
                await kraken.close(1001, "maintenance")
            case "torn":
                await kraken.reset()
            case _:
                await kraken.send(b"x" * (MAX_BYTES + 1))
        await receiver.until_lost()
    assert receiver.losses[0].startswith(sentence)


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


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (
            "401 Unauthorized",
            b'{"errorMessage":"Insufficient authorization to perform request."}',
            "OANDA answered 401: Insufficient authorization to perform request; see OANDA_TOKEN and "
            "OANDA_ACCOUNT; practice and live have their own addresses",
        ),
        ("403 Forbidden", b"", "OANDA answered 403; see OANDA_TOKEN and OANDA_ACCOUNT"),
        ("404 Not Found", b"<html>", "OANDA answered 404; see OANDA_ACCOUNT and OANDA_STREAM_URL"),
        (
            "400 Bad Request",
            b'{"errorCode":"X","errorMessage":"Invalid value"}',
            "OANDA answered 400: Invalid value; see OANDA_ACCOUNT and the instruments' sources",
        ),
        ("429 Too Many Requests", b"", "OANDA answered 429"),
        ("405 Method Not Allowed", b"x" * 70_000, "OANDA answered 405 and more than an error needs"),
        ("503 Service Unavailable", b"", "OANDA answered 503"),
    ],
)
async def test_refusal_is_a_sentence_and_asked_again_seldom_and_a_fault_of_theirs_soon(
    status: str, body: bytes, sentence: str
) -> None:
    waited = 0.001 if status.startswith("503") else 60.0
    assert await oanda_lost(says(body, status), longest_retry_s=60.0) == (sentence, [waited])


@pytest.mark.parametrize(
    ("asked", "waited"), [("100", 100.0), ("9999999", 900.0), ("1", 60.0), ("soon", 60.0), ("-5", 60.0)]
)
async def test_venue_that_asks_us_to_wait_is_heeded_within_reason(asked: str, waited: float) -> None:
    busy = says(b"", "429 Too Many Requests", Retry_After=asked)
    assert (await oanda_lost(busy, longest_retry_s=60.0))[1] == [waited]


@pytest.mark.parametrize(
    ("token", "account", "sentence"),
    [
        ("", ACCOUNT, "OANDA_TOKEN is not set; OANDA requires it"),
        (TOKEN, " ", "OANDA_ACCOUNT is not set; OANDA requires it"),
        ("a\nb", ACCOUNT, "OANDA_TOKEN has a character that cannot be part of it"),
        ("tökén", ACCOUNT, "OANDA_TOKEN has a character that cannot be part of it"),
        (TOKEN, "101 004", "OANDA_ACCOUNT has a character that cannot be part of it"),
    ],
)
async def test_nobody_is_asked_without_a_token_and_an_account(
    token: str, account: str, sentence: str
) -> None:
    async with HttpVenue(says(b"")) as venue:
        assert (await loss_of(make_oanda(venue.url, token, account)))[0] == sentence
    assert venue.requests == []


async def test_account_cannot_lead_elsewhere() -> None:
    async with HttpVenue(says(b"", "404 Not Found")) as venue:
        await loss_of(make_oanda(venue.url, account="../x?y"))
    assert venue.requests[0].path == "/v3/accounts/..%2Fx%3Fy/pricing/stream"


async def test_token_is_not_carried_to_where_a_redirect_points() -> None:
    async with HttpVenue(says(b"")) as other:
        lost, _ = await oanda_lost(says(b"", "307 Temporary Redirect", Location=f"{other.url}/v3"))
    assert lost == "OANDA answered 307"
    assert other.requests == []


@pytest.mark.parametrize("status", ["401 Unauthorized", "200 OK", "307 Temporary Redirect"])
async def test_token_and_account_are_in_no_record_of_the_most_talkative_log(
    status: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    error = b'{"errorMessage":"Your token is %s, your account %s"}\n' % (TOKEN.encode(), ACCOUNT.encode())
    lost, _ = await oanda_lost(says(error, status))
    assert "httpcore2" in caplog.text
    assert TOKEN not in caplog.text + lost
    assert ACCOUNT not in caplog.text + lost
    logging.getLogger("losses").warning("Your token is %s", TOKEN)
    assert TOKEN in caplog.text
