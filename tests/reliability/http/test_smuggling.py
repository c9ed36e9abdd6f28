"""Row 38: no request hides in another, asked directly or over a proxy whose connection all clients share."""

from __future__ import annotations

import itertools
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.reliability.fixtures import Tell, sqlite_in
from tests.reliability.services.processes import Installation, Process

from .front_proxies import haproxy, nginx
from .smuggling import (
    ASKS_FOR_X,
    BROKEN,
    CASES,
    ENDED,
    GOES_ON,
    HIDDEN,
    NEXT,
    NEXT_STATUS,
    PIPELINED,
    REFUSED,
    REFUSED_AFTER,
    UPGRADES,
    Case,
    hear,
    post,
    size,
)

OUTER_STATUS, HIDDEN_STATUS = 401, 200
# Each may be led astray by what the attack left on the shared connection.
NEXT_CLIENTS = 3
ATTACKS, GAPS_S = 20, (0.0, 0.001, 0.003, 0.01)
# Of uvicorn as it comes.
HOLES = ("upgrade with a body", "GET upgrade with a body", "h2c with a body", "h2c, then more")
Front = Callable[[Path, int], AbstractContextManager[int]]


@pytest.fixture(scope="module")
def server(embedded_for_module: Installation) -> Iterator[Process]:
    with embedded_for_module.web_process() as running:
        yield running
        said = running.log.read_text()
        assert "Traceback" not in said
        assert "could not be read" not in said


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """uvicorn as it comes, which can be led astray."""
    with sqlite_in(tmp_path_factory.mktemp("stock")).serve_stock() as running:
        yield running


def converse(port: int, *parts: bytes) -> list[int]:
    """The status of each answer until the server closes."""
    heard = hear(port, *parts)
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", heard) if status != b"100"]


def is_as_it_should_be(case: Case, statuses: list[int]) -> bool:
    expected: dict[str, list[list[int]]] = {
        REFUSED: [[case.status]],
        REFUSED_AFTER: [[OUTER_STATUS, case.status]],
        # Its head may have been answered before the rest came.
        BROKEN: [[case.status], [OUTER_STATUS]],
        ENDED: [[OUTER_STATUS]],
        GOES_ON: [[OUTER_STATUS, NEXT_STATUS]],
        PIPELINED: [[OUTER_STATUS, HIDDEN_STATUS, NEXT_STATUS]],
    }
    return statuses in expected[case.fate]


@pytest.mark.row("38", "no desynchronization when asked directly")
def test_no_request_can_be_hidden_inside_another(server: Process, tell: Tell) -> None:
    heard = {name: converse(server.port, *case.parts, NEXT) for name, case in CASES.items()}
    wrong = {name: said for name, said in heard.items() if not is_as_it_should_be(CASES[name], said)}
    tell(f"{len(heard)} cases; desynchronizations: {len(wrong)}")
    assert wrong == {}


@pytest.mark.row("38", "every answer to a request for another protocol says that the connection ends")
def test_ignored_or_refused_upgrades_close_the_connection(server: Process, tell: Tell) -> None:
    last = {
        name: hear(server.port, *case.parts).rpartition(b"HTTP/1.1 ")[2] for name, case in UPGRADES.items()
    }
    says_so = {
        name
        for name, answer in last.items()
        if re.search(rb"\r\nconnection: (upgrade, )?close\r\n", answer, re.I)
    }
    tell(f"{len(says_so)} of {len(UPGRADES)} answers say so")
    assert says_so == set(UPGRADES)


@pytest.mark.row("38", "a desync would be seen")
def test_control_an_answered_hidden_request_is_noticed(stock: Process, tell: Tell) -> None:
    heard = {name: first_astray(stock.port, CASES[name]) for name in HOLES}
    tell(f"stock uvicorn: {heard}")
    assert all(HIDDEN_STATUS in statuses for statuses in heard.values())


def first_astray(port: int, case: Case) -> list[int]:
    """Parts that meet the server together are sometimes read as they should be, and not in the end."""
    heard: list[list[int]] = []

    def is_astray() -> bool:
        heard.append(converse(port, *case.parts, NEXT))
        return HIDDEN_STATUS in heard[-1]

    wait_until(is_astray)
    return heard[-1]


def led_astray(port: int, parts: Sequence[bytes], gap_s: float = 0.005) -> list[list[int]]:
    """What the next clients of a proxy hear after an attack, where it is no answer to their own request."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as attacker:
        attacker.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(ConnectionError):
            for part in parts:
                attacker.sendall(part)
                time.sleep(gap_s)
        heard = [converse(port, NEXT) for _ in range(NEXT_CLIENTS)]
    return [statuses for statuses in heard if statuses != [NEXT_STATUS]]


def attacked_on_a_page(port: int, gap_s: float) -> list[list[int]]:
    """A page takes its time, so that the hidden request is there before nginx has the answer."""
    return led_astray(port, (post(ASKS_FOR_X, size(HIDDEN), target=b"/accounts/login/"), HIDDEN), gap_s)


@pytest.mark.row("38", "no answer reaches another client through nginx or HAProxy")
@pytest.mark.parametrize("front", [nginx, haproxy])
def test_no_client_behind_a_proxy_receives_an_answer_meant_for_another(
    server: Process, front: Front, tmp_path: Path, tell: Tell
) -> None:
    with front(tmp_path, server.port) as port:
        wrong = {name: heard for name, case in CASES.items() if (heard := led_astray(port, case.parts))}
        on_a_page = [
            heard
            for number in range(ATTACKS)
            if (heard := attacked_on_a_page(port, GAPS_S[number % len(GAPS_S)]))
        ]
    tell(
        f"{front.__name__}: {len(CASES) + ATTACKS} attacks; desynchronizations: {len(wrong) + len(on_a_page)}"
    )
    assert wrong == {}
    assert on_a_page == []


@pytest.mark.row("38", "an answer to somebody else would be seen")
def test_control_an_answer_meant_for_another_client_is_noticed(
    stock: Process, tmp_path: Path, tell: Tell
) -> None:
    gaps_s, heard = itertools.cycle(GAPS_S), list[list[list[int]]]()
    with nginx(tmp_path, stock.port) as port:

        def is_astray() -> bool:
            heard.append(attacked_on_a_page(port, next(gaps_s)))
            return heard[-1] != []

        wait_until(is_astray)
    tell(f"stock uvicorn behind nginx: desynchronised by attack {len(heard)}, answered {heard[-1]}")
