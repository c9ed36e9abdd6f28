"""Every way to be refused by OANDA is a sentence that says what to change, and never the token."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from market.engine.feeds.venues.oanda import OandaFeed
from tests.local_http import Request
from tests.market.feeds.receivers import RecordingReceiver, Waits, running

from .fakes.http_venue import Answer, HttpVenue, Reply
from .fakes.oanda import ACCOUNT, TOKEN
from .fakes.venue import make_pace

NAMES = {"EURUSD": "EUR_USD", "XAUUSD": "XAU_USD"}


def make_oanda(url: str, token: str = TOKEN, account: str = ACCOUNT, **pace: Any) -> OandaFeed:
    return OandaFeed(NAMES, token, account, url, url, make_pace(**pace))


def says(status: str, body: bytes = b"", **headers: str) -> Answer:
    async def answer(_: Request, reply: Reply) -> None:
        await reply.whole(body, status, **headers)

    return answer


async def loss_of(answer: Answer, waits: Waits | None = None, **pace: Any) -> str:
    """Why a feed that is answered so says it is lost."""
    receiver, waits = RecordingReceiver(), waits or Waits()
    pace = {"sleep": waits, "chance": lambda: 0.0, **pace}
    async with HttpVenue(answer) as venue, running(make_oanda(venue.url, **pace), receiver):
        await receiver.until(lambda: bool(waits.seconds))
    return receiver.losses[0]


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
    ],
)
async def test_refusal_is_a_sentence_and_asked_again_seldom(status: str, body: bytes, sentence: str) -> None:
    waits = Waits()

    assert await loss_of(says(status, body), waits, longest_retry_s=60.0) == sentence
    assert waits.seconds == [60.0]


async def test_fault_of_theirs_is_asked_again_soon() -> None:
    waits = Waits()

    assert await loss_of(says("503 Service Unavailable"), waits, longest_retry_s=60.0) == "OANDA answered 503"
    assert waits.seconds == [0.001]


@pytest.mark.parametrize(
    ("asked", "waited"), [("100", 100.0), ("9999999", 900.0), ("1", 60.0), ("soon", 60.0), ("-5", 60.0)]
)
async def test_venue_that_asks_us_to_wait_is_heeded_within_reason(asked: str, waited: float) -> None:
    waits = Waits()

    await loss_of(says("429 Too Many Requests", Retry_After=asked), waits, longest_retry_s=60.0)

    assert waits.seconds == [waited]


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
    receiver, waits = RecordingReceiver(), Waits()

    async with HttpVenue(says("200 OK")) as venue:
        feed = make_oanda(venue.url, token, account, sleep=waits)
        async with running(feed, receiver):
            await receiver.until(lambda: bool(waits.seconds))

    assert receiver.losses == [sentence]
    assert venue.requests == []


async def test_account_cannot_lead_elsewhere() -> None:
    receiver = RecordingReceiver()

    async with HttpVenue(says("404 Not Found")) as venue:
        feed = make_oanda(venue.url, account="../x?y", sleep=Waits())
        async with running(feed, receiver):
            await receiver.until(lambda: bool(receiver.losses))

    assert venue.requests[0].path == "/v3/accounts/..%2Fx%3Fy/pricing/stream"


async def test_token_is_not_carried_to_where_a_redirect_points() -> None:
    async with HttpVenue(says("200 OK")) as other:
        lost = await loss_of(says("307 Temporary Redirect", Location=f"{other.url}/v3"))

    assert lost == "OANDA answered 307"
    assert other.requests == []


async def test_server_that_never_answers_is_given_up() -> None:
    async def never(_: Request, reply: Reply) -> None:
        await reply.left()

    assert (await loss_of(never, open_s=0.05)).endswith("(OANDA_STREAM_URL) did not answer in time")


async def test_refusal_that_never_ends_is_given_up() -> None:
    async def endless(_: Request, reply: Reply) -> None:
        await reply.begin("401 Unauthorized")
        await reply.left()

    assert (await loss_of(endless, open_s=0.05)).endswith("(OANDA_STREAM_URL) did not answer in time")


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://127.0.0.1:1", "http://127.0.0.1:1 (OANDA_STREAM_URL) cannot be reached"),
        ("stream.example", "stream.example (OANDA_STREAM_URL) is not an address"),
        ("http://stream:example", "http://stream:example (OANDA_STREAM_URL) is not an address"),
    ],
)
async def test_address_that_leads_nowhere_is_told(url: str, sentence: str) -> None:
    receiver = RecordingReceiver()

    async with running(make_oanda(url, sleep=Waits()), receiver):
        await receiver.until(lambda: bool(receiver.losses))

    assert receiver.losses[0].startswith(sentence)


class TestToken:
    """The log, at its most talkative, never has the token."""

    async def run(self, answer: Answer) -> None:
        receiver, waits = RecordingReceiver(missing={"EURUSD": 0}), Waits()
        async with HttpVenue(answer) as venue:
            feed = make_oanda(venue.url, sleep=waits)
            async with running(feed, receiver):
                await receiver.until(lambda: bool(waits.seconds))
        logging.getLogger("losses").warning("lost: %s", receiver.losses)

    @pytest.mark.parametrize("status", ["401 Unauthorized", "200 OK", "307 Temporary Redirect"])
    async def test_is_in_no_record(self, status: str, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        parrot = says(status, b'{"errorMessage":"Your token is %s"}\n' % TOKEN.encode())

        await self.run(parrot)

        assert "/pricing/stream" in caplog.text
        assert "lost: ['OANDA" in caplog.text
        assert TOKEN not in caplog.text

    async def test_would_be_found_in_a_record(self, caplog: pytest.LogCaptureFixture) -> None:
        logging.getLogger("losses").warning("lost: %s", f"Your token is {TOKEN}")

        assert TOKEN in caplog.text
