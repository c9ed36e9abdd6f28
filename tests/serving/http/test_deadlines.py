"""What a connection may take its time for."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from serving.http.deadlines import BYTES_A_SECOND, Deadline, HttpTimeouts, TransferPace
from tests.patience import PATIENCE_S, wait_until

from .conversations import Texts, get
from .serving import HOST, SOON, Serving, hear, serving, statuses

GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
LARGE = b"GET /large HTTP/1.1\r\n" + HOST + b"\r\n"
POST = b"POST / HTTP/1.1\r\nContent-Length: 1000\r\n" + HOST + b"\r\n"

LONG_S = PATIENCE_S
PATIENT = {"head_s": LONG_S, "grace_s": LONG_S, "idle_s": 100 * LONG_S}
UNENDED = (
    b"G",
    b"GET / HTTP/1.1\r\nX: ",
    b"GET /ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
)


@pytest.fixture(scope="module")
def patient() -> Iterator[Serving]:
    """Its patience ends when the test says so."""
    with serving(**PATIENT, **SOON) as running:
        yield running


def send(running: Serving, *sent: tuple[socket.socket, bytes]) -> None:
    with running.all_read(sum(len(data) for _, data in sent)):
        for client, data in sent:
            client.sendall(data)


def drip(running: Serving, client: socket.socket, *parts: bytes) -> bytes:
    """All of it takes longer than it may, and none of the pauses does; what the server says then."""
    for part in parts:
        send(running, (client, part))
        running.pass_time(0.6 * LONG_S)
    return hear(client)


def wait_until_given_up(running: Serving, after_s: float = LONG_S) -> None:
    def is_given_up() -> bool:
        running.pass_time(after_s)
        return running.open_connections == 0

    wait_until(lambda: running.open_connections)
    wait_until(is_given_up)


def answered(client: socket.socket) -> socket.socket:
    """A connection whose first request has its answer."""
    client.sendall(GET)
    heard = b""
    while b"answered" not in heard:
        data = client.recv(65536)
        assert data, heard
        heard += data
    return client


def test_silence_is_closed_without_a_word(patient: Serving) -> None:
    with patient.connect() as client:
        wait_until_given_up(patient)
        assert hear(client) == b""


def test_a_head_that_does_not_end_is_408(patient: Serving) -> None:
    with ExitStack() as stack:
        begun = [stack.enter_context(patient.connect()) for _ in UNENDED]
        dripping, later = (stack.enter_context(patient.connect()) for _ in range(2))
        send(patient, *zip(begun, UNENDED, strict=True), (dripping, b"GET / HTTP/1.1\r\nX: "))
        answered(later)
        patient.pass_time(0.6 * LONG_S)
        # Between requests there is more time than for a head; the next head has as long as the first.
        send(patient, (dripping, b"a" * 100), (later, GET[:3]))
        patient.pass_time(0.6 * LONG_S)
        assert [statuses(hear(client)) for client in (*begun, dripping)] == [[408]] * (len(UNENDED) + 1)
        send(patient, (later, GET[3:9]))
        patient.pass_time(0.6 * LONG_S)
        assert statuses(hear(later)) == [408]


def test_a_head_that_does_not_end_behind_known_ones_is_408(patient: Serving) -> None:
    patient.offer(Texts())
    known = get("/short/a")
    with patient.connect() as client:
        assert statuses(drip(patient, client, known * 3 + known[:-2] + b"X: ", b"aaa")) == [200] * 3 + [408]
    with patient.connect() as client:
        assert statuses(drip(patient, client, known + known[:3], known[3:5])) == [200, 408]


@pytest.mark.parametrize("sent", [0, 1, 999])
def test_a_body_that_stops_is_408(patient: Serving, sent: int) -> None:
    with patient.connect() as client:
        assert statuses(drip(patient, client, POST + b"x" * sent, b"")) == [408]


def test_a_dripping_body_is_408_and_the_application_hears_that_it_ended(patient: Serving) -> None:
    before = patient.app.disconnected
    with patient.connect() as client:
        assert statuses(drip(patient, client, POST, b"x" * 500, b"x" * 400)) == [408]
    wait_until(lambda: patient.app.disconnected > before)


@contextmanager
def reading_nothing(running: Serving) -> Iterator[socket.socket]:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", running.port))
        yield client


def test_who_reads_nothing_is_given_up(patient: Serving) -> None:
    with reading_nothing(patient) as client:
        before = len(patient.app.requests)
        client.sendall(LARGE)
        wait_until(lambda: len(patient.app.requests) > before)
        wait_until_given_up(patient)


@pytest.mark.served
def test_who_pipelines_and_reads_nothing_is_given_up(patient: Serving) -> None:
    with reading_nothing(patient) as client:
        client.setblocking(False)
        wait_until(lambda: patient.open_connections)

        def is_given_up() -> bool:
            try:
                client.send(LARGE * 1_000)
            except BlockingIOError:
                patient.pass_time(LONG_S)
            except ConnectionError:
                pass
            return patient.open_connections == 0

        wait_until(is_given_up)


def test_who_reads_late_but_reads_has_it_all() -> None:
    """Both patiences outlast it on any machine: it is the looks in between that it must survive."""
    patience = {"grace_s": PATIENCE_S, "leave_s": PATIENCE_S}
    with serving(look_every_s=0.05, head_s=0.3, **patience) as patient, patient.connect() as client:
        client.sendall(LARGE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        with patient.connect() as silent:
            assert hear(silent) == b""
        assert len(hear(client)) > 8_000_000


def test_an_idle_connection_is_closed_in_the_end(patient: Serving) -> None:
    with patient.connect() as client:
        answered(client)
        wait_until_given_up(patient, PATIENT["idle_s"])
        assert hear(client) == b""


def test_uvicorns_own_patience_between_requests_is_not_asked() -> None:
    impatient: dict[str, object] = {"timeout_keep_alive": 1}
    with (
        serving(impatient) as ours,
        serving(impatient | {"http": "httptools"}) as uvicorns,
        ours.connect() as client,
        uvicorns.connect() as control,
    ):
        answered(client)
        answered(control)
        assert hear(control) == b""
        client.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert statuses(hear(client)) == [200]


def test_what_was_started_last_is_due_last() -> None:
    waiting: Deadline[str] = Deadline(10)
    for which, at in (("first", 0), ("second", 1), ("first", 2)):
        waiting.start(which, at)

    assert [list(waiting.due(at)) for at in (10.5, 11, 100)] == [[], ["second"], ["first"]]
    assert len(waiting) == 0


def test_pace_is_counted_from_the_beginning_but_for_pauses() -> None:
    pace, grace_s = TransferPace(0), HttpTimeouts.grace_s
    assert not pace.is_too_slow(grace_s, grace_s)
    assert pace.is_too_slow(grace_s + 0.1, grace_s)

    pace.moved(10 * BYTES_A_SECOND)
    assert not pace.is_too_slow(grace_s + 10, grace_s)
    assert pace.is_too_slow(grace_s + 10.1, grace_s)

    pace.pause(5)
    assert not pace.is_too_slow(grace_s + 15, grace_s)
