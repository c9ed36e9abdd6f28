"""A server answers what it was told to know before the application hears of it, and all else as ever."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from core.contract.answers import AlreadyDone, already_done
from serving.http.bounds import END_OF_HEAD
from serving.http.deadlines import ANSWERING, IDLE
from serving.http.short_path import KNOWN, LONGEST_KNOWN, MOST_GATHERED, Give, Headers
from tests.patience import until, wait_until

from .conversations import Conversation, Texts, bodies, get, text
from .serving import HOST, serving, statuses


@pytest.fixture
async def talk() -> Conversation:
    return Conversation()


async def test_target_is_looked_at_once_and_the_last_head_is_known_without(talk: Conversation) -> None:
    for _ in range(2):
        talk.say(get("/short/a"))
    before = talk.texts.recalled
    said = [talk.say(get(f"/short/{name}")) for name in "aabba"]

    assert [bodies(b"".join(writes)) for writes in said] == [[name.encode()] for name in "aabba"]
    assert talk.texts.recalled == before + 3
    assert (talk.texts.found, talk.app.requests) == (2, [])


async def test_other_targets_reach_the_application_behind_known_ones(talk: Conversation) -> None:
    head = get("/short/a")
    talk.say(head)
    written = b"".join(talk.say(head * 3 + get("/long")))
    await until(lambda: talk.app.requests)

    assert bodies(written) == [b"a"] * 3
    assert [request["path"] for request in talk.app.requests] == ["/long"]


@pytest.mark.parametrize(
    "head",
    [
        get("/short/a", b"Content-Length: 0\r\n"),
        get("/short/a", b"Connection: close\r\n"),
        get("/short/a", b"Expect: 100-continue\r\n"),
        get("/short/a", b"Upgrade: h2c\r\nConnection: Upgrade\r\n"),
        get("/short/a", HOST),
        get("/short/a").replace(b"GET", b"HEAD"),
        get("/short/a").replace(b"HTTP/1.1", b"HTTP/1.0"),
        b"GET /short/a HTTP/1.1\r\n\r\n",
    ],
)
async def test_head_that_frames_more_than_a_get_is_not_looked_at(talk: Conversation, head: bytes) -> None:
    talk.say(head)
    talk.say(head)

    assert talk.texts.found == 0


async def test_requests_that_come_together_are_answered_in_one_write(talk: Conversation) -> None:
    paths = [f"/short/{number}" for number in range(20)]
    heads = b"".join(map(get, paths))
    talk.say(heads)
    (written,) = talk.say(heads)

    assert bodies(written) == [path.removeprefix("/short/").encode() for path in paths]


async def test_head_that_comes_in_two_parts_reaches_the_application(talk: Conversation) -> None:
    head = get("/short/a")
    talk.say(head)

    assert bodies(b"".join(talk.say(head + head + head[:20]))) == [b"a", b"a"]
    talk.say(head[20:])
    await asyncio.sleep(0)
    assert [request["path"] for request in talk.app.requests] == ["/short/a"]


async def test_many_long_answers_are_written_in_parts(talk: Conversation) -> None:
    head = get("/short/" + "a" * 900)
    talk.say(head)
    writes = talk.say(head * 200)

    assert sum(len(bodies(written)) for written in writes) == 200
    assert max(map(len, writes)) < MOST_GATHERED + 2_000


async def test_client_that_does_not_read_is_answered_when_it_does(talk: Conversation) -> None:
    talk.say(get("/short/a"))
    talk.protocol.pause_writing()
    writes = talk.say(get("/short/a"))
    # The application has it, and what it answers waits.
    await until(lambda: talk.app.requests)
    await asyncio.sleep(0)

    assert writes == []
    talk.protocol.resume_writing()
    await until(lambda: talk.protocol.state == IDLE)
    assert b"".join(writes).endswith(b"answered")


async def test_head_that_begins_behind_a_short_answer_has_as_long_as_any(talk: Conversation) -> None:
    talk.say(get("/short/a"))
    watch = talk.protocol.watch
    for path in ("/short/a", "/short/b"):
        talk.say(get(path) + b"GET")
        assert (talk.protocol in watch.heads, talk.protocol in watch.idle) == (True, False)
        talk.say(b" /short/c HTTP/1.1\r\n" + HOST + b"\r\n")
        await until(lambda: talk.protocol.state == IDLE)
        assert (talk.protocol in watch.heads, talk.protocol in watch.idle) == (False, True)


def test_client_that_does_not_read_makes_the_server_hold_a_few_answers() -> None:
    """Over a socket: how soon it is full is for the transport to say."""

    class LongTexts(Texts):
        def look_up(self, target: bytes, headers: Headers) -> Give | None:
            return text(b"a" * 20_000)

    head, count, heard, most = get("/short/a"), 1_000, 0, 4 * MOST_GATHERED
    with serving() as running:
        running.offer(LongTexts())
        with running.connect() as client:
            sending = threading.Thread(target=client.sendall, args=(head * count,))
            sending.start()
            wait_until(lambda: running.connections)
            (protocol,) = running.connections
            held = protocol.transport.get_write_buffer_size
            wait_until(lambda: (protocol.flow.write_paused and protocol.state == ANSWERING) or held() > most)
            held_at_last = held()
            answers = client.makefile("rb")
            while heard < count:
                heard += answers.readline().endswith(b"HTTP/1.1 200 OK\r\n")
            sending.join()
            answers.close()
    assert 0 < held_at_last <= most


async def test_remembered_heads_are_bounded(talk: Conversation) -> None:
    for number in range(3 * KNOWN):
        talk.texts.remember(get(f"/short/{number}"), text(b"a"))
        if number == KNOWN:
            # Of those before, none is forgotten at once.
            assert talk.texts.recall(get("/short/1"))
    known = [talk.texts.recall(get(f"/short/{number}")) for number in range(3 * KNOWN)]

    assert KNOWN <= sum(each is not None for each in known) <= 2 * KNOWN


async def test_long_head_is_answered_and_not_remembered(talk: Conversation) -> None:
    head = get("/short/a", b"X-Long: " + b"a" * LONGEST_KNOWN + b"\r\n")

    assert [bodies(b"".join(talk.say(head))) for _ in range(2)] == [[b"a"]] * 2
    assert talk.texts.found == 2


KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
HANDSHAKE = get("/ws", b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" + KEY)


@pytest.mark.parametrize("known", [b"", get("/short/a")], ids=["new head", "known head"])
async def test_socket_that_is_asked_for_behind_a_request_is_refused(talk: Conversation, known: bytes) -> None:
    talk.say(known)
    written = b"".join(talk.say(get("/short/a") + HANDSHAKE))

    assert statuses(written) == [200, 400]
    assert talk.app.requests == []


@pytest.mark.parametrize(
    ("told", "instead", "status"),
    [(b": 13", b": 12", 426), (b"dGhlIHNhbXBsZSBub25jZQ==", b"c2hvcnQ=", 400), (b"GET", b"POST", 400)],
)
async def test_handshake_that_cannot_succeed_is_told_so_in_the_body_of_all_errors(
    talk: Conversation, told: bytes, instead: bytes, status: int
) -> None:
    written = b"".join(talk.say(HANDSHAKE.replace(told, instead)))

    assert statuses(written) == [status]
    assert json.loads(written.partition(END_OF_HEAD)[2])["error"]["code"] == "invalid_upgrade"


async def test_target_that_cannot_be_looked_up_reaches_the_application(
    talk: Conversation, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        writes = talk.say(get("/broken"))
        await until(lambda: talk.protocol.state == IDLE)
        assert b"".join(writes).endswith(b"answered")  # noqa: B023
    # The same fault again is not worth another line.
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_requests_behind_one_that_waits_are_answered_after_it(talk: Conversation) -> None:
    talk.say(get("/short/a"))
    assert (
        talk.say(get("/later") + get("/short/a")) == talk.say(get("/short/b")) == talk.say(get("/long")) == []
    )
    await asyncio.sleep(0)
    assert talk.app.requests == []

    talk.texts.asker.answer(b"", b"content-length: 5\r\n\r\n", b"later")
    await until(lambda: talk.protocol.state == IDLE)
    assert bodies(b"".join(talk.transport.writes)) == [b"later", b"a", b"b", b"answered"]


async def test_one_that_waited_in_vain_takes_the_ordinary_path_before_what_is_behind_it(
    talk: Conversation,
) -> None:
    talk.say(get("/short/a"))
    talk.say(get("/later") + get("/short/a"))
    talk.protocol.already_done = AlreadyDone(1.0, None)
    talk.texts.asker.give_back()
    await until(lambda: talk.protocol.state == IDLE)

    assert bodies(b"".join(talk.transport.writes)) == [b"answered", b"a"]
    (request,) = talk.app.requests
    assert (request["path"], already_done(request)) == ("/later", AlreadyDone(1.0, None))


async def test_one_that_waits_while_the_server_stops_is_the_last_and_says_so(talk: Conversation) -> None:
    talk.say(get("/later") + get("/short/a"))
    talk.protocol.shutdown()
    talk.texts.asker.answer(b"", b"content-length: 5\r\n\r\n", b"later")

    assert b"".join(talk.transport.writes).endswith(
        b"\r\ncontent-length: 5\r\nconnection: close\r\n\r\nlater"
    )
    assert talk.transport.has_ended


async def test_answer_for_a_client_that_is_gone_goes_nowhere(talk: Conversation) -> None:
    talk.say(get("/later") + get("/short/a"))
    talk.protocol.connection_lost(None)
    asker = talk.texts.asker
    asker.answer(b"", b"content-length: 5\r\n\r\n", b"later")
    asker.give_back()

    assert talk.transport.writes == []
    assert talk.app.requests == []
