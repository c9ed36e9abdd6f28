"""What the clients ask for when they come back, and how soon: Python, TypeScript and the terminal page."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from tickwire.missed import Hole, Missed
from tickwire.session import STEADY_S, AnnouncedSession, Manner, Session

from tests.patience import PATIENCE_S

from .returning import Frame, reply, says, serving
from .test_typescript import DRIVER, FLAGS

pytestmark = pytest.mark.served

KEY = "tw_live_any"
NODE = ("node", *FLAGS)
WATCHING = "import sys, tickwire; list(tickwire.Client(sys.argv[2], sys.argv[1]).watch(*sys.argv[3:]))"
FOLLOWING = "import sys, tickwire; list(tickwire.Client(sys.argv[2], sys.argv[1]).follow_signals())"
WATCHING_WITHOUT_BLOCKING = """
import asyncio, sys, tickwire

async def watch():
    async for _ in tickwire.AsyncClient(sys.argv[2], sys.argv[1]).watch(*sys.argv[3:]):
        pass

asyncio.run(watch())
"""
Watch = Callable[[str], AbstractContextManager[None]]


@contextmanager
def process(*command: str) -> Iterator[None]:
    started = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": "clients/python"})
    try:
        yield
    finally:
        started.kill()
        started.wait(PATIENCE_S)


@pytest.fixture(params=["python", "typescript", "terminal"])
def watch(request: pytest.FixtureRequest, tmp_path: Path) -> Watch:
    """Watches A and B at an address."""
    if request.param == "python":
        return lambda url: process(sys.executable, "-c", WATCHING, url, KEY, "A", "B")
    if request.param == "typescript":
        request.getfixturevalue("built")
        return lambda url: process(*NODE, DRIVER, url, KEY, "watch", "A", "B")
    page = tmp_path / "terminal"
    shutil.copytree("static/terminal", page)
    (page / "package.json").write_text('{"type": "module"}')
    module = str(page / "streams/stream.js")
    return lambda url: process(*NODE, "tests/clients/terminal.mjs", module, url, "/ws/market", "A", "B")


def client_version() -> str:
    with open("clients/python/pyproject.toml", "rb") as file:
        return str(tomllib.load(file)["project"]["version"])


@pytest.mark.parametrize("watching", [WATCHING, WATCHING_WITHOUT_BLOCKING])
def test_python_streams_name_the_client_and_its_version(watching: str) -> None:
    silent = says(reply("A", epoch="e", positions={"A": 1}))
    with serving(silent) as service, process(sys.executable, "-c", watching, service.url, KEY, "A"):
        service.asked()
        assert service.agent == f"tickwire-python/{client_version()}"


def test_places_of_a_gap_are_where_the_next_connection_goes_on(watch: Watch) -> None:
    gap = {"type": "gap", "symbols": ["A", "B"], "epoch": "e2", "positions": {"A": 3, "B": 8}, "time": 2}
    tick = {"symbol": "A", "bid": 1.0, "ask": 1.1, "spread": 0.1, "time": 3, "volume": 1, "seq": 4}
    before = reply("A", "B", epoch="e1", positions={"A": 5, "B": 7})
    after = reply("A", "B", epoch="e2", positions={"A": 4, "B": 8}, recovered=True)
    with serving(says(before, gap, tick, then=1012), says(after)) as service, watch(service.url):
        service.asked()
        again = service.asked()
    assert again["resume"] == {"epoch": "e2", "positions": {"A": 4, "B": 8}}


@pytest.mark.parametrize("client", ["python", "typescript"])
def test_place_of_the_first_reply_is_where_signals_go_on(request: pytest.FixtureRequest, client: str) -> None:
    def follow(url: str) -> AbstractContextManager[None]:
        if client == "python":
            return process(sys.executable, "-c", FOLLOWING, url, KEY)
        request.getfixturevalue("built")
        return process(*NODE, DRIVER, url, KEY, "signals")

    first = says(reply("*", since="after:9041"), then=1012)
    with serving(first, says(reply("*", since="after:9041", recovered=True))) as service, follow(service.url):
        places = [service.asked().get("since") for _ in range(2)]
    assert places == [None, "after:9041"]


# Python's, without a connection.


def say(session: Session, *frames: Frame) -> list[Frame]:
    """What a program receives."""
    received = list[Frame]()
    for frame in frames:
        for heard in session.hear(json.dumps(frame)):
            if isinstance(heard, Hole):
                session.report(heard, heard.missed)
            else:
                session.deliver(heard)
                received.append(heard)
    return received


def test_symbol_without_a_place_is_named_when_the_connection_was_lost() -> None:
    missed: list[Missed] = []
    session = Session("market", KEY, ["A", "B", "NEW"], (), Manner(missed.append))
    say(session, reply("A", "B", "NEW", epoch="e1", positions={"A": 5, "B": 7, "NEW": 0}))
    # As an older service says it.
    say(session, {"type": "gap", "symbols": ["A", "B"], "epoch": "e2", "time": 2})
    session.subscribe()
    say(session, reply("A", "B", "NEW", epoch="e2", positions={"A": 9, "B": 0, "NEW": 0}))
    assert [hole.symbol for hole in missed] == ["A", "B", "A"]


def test_gap_of_all_leaves_no_place_of_the_numbering_before() -> None:
    session = Session("orderflow", KEY)
    say(session, reply("*", epoch="e1", positions={"A": 500, "B": 700}))
    say(session, {"type": "gap", "symbols": ["*"], "epoch": "e2", "positions": {"A": 3}, "time": 2})
    assert json.loads(session.subscribe())["resume"] == {"epoch": "e2", "positions": {"A": 3}}


def test_signals_that_nobody_can_go_on_from_are_named() -> None:
    missed: list[Missed] = []
    session = AnnouncedSession("signals", KEY, [], None, {}, Manner(missed.append))
    # As an older service says it: without a place.
    say(session, reply("*"))
    assert missed == []
    session.subscribe()
    say(session, reply("*"))
    assert missed == [Missed("*", None, None, None, None, 1)]
    # A place that was given and is too old is named at once.
    since = "6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01"
    session = AnnouncedSession("signals", KEY, [], since, {}, Manner(missed.append))
    say(session, reply("*", recovered=False, unrecovered=["*"], since="after:7"))
    assert len(missed) == 2


@pytest.mark.parametrize(("held_s", "is_soon"), [(STEADY_S - 1, False), (STEADY_S, True)])
def test_only_a_connection_that_held_shortens_the_waits(held_s: float, is_soon: bool) -> None:
    moments = iter([0.0, held_s])
    session = Session("market", KEY, ["A"], (), Manner(clock=lambda: next(moments)))
    for _ in range(4):
        session.wait_after_end(ConnectionRefusedError())
    session.subscribe()
    say(session, reply("A", epoch="e", positions={"A": 1}))
    assert ((session.wait_after_end(ConnectionResetError()) or 0) <= 0.25) is is_soon
