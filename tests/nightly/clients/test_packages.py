"""Both clients as somebody else gets them: built, installed where nothing else is, and asked; and how soon
they come back."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from websockets.http11 import Request
from websockets.server import ServerProtocol

from tests.client import Server
from tests.clients.conftest import CLIENT
from tests.clients.conftest import built as built
from tests.clients.conftest import modules as modules
from tests.clients.returning import reply, says, serving
from tests.clients.test_returning import Watch
from tests.clients.test_returning import watch as watch
from tests.factories import make_account, make_instrument, make_key, make_tier, put_quote
from tests.patience import PATIENCE_S, wait_until
from tests.programs.packages import build_wheel, install_alone

SYMBOL = "EURUSD"
ASK = """
import { Tickwire } from "tickwire";
const tickwire = new Tickwire({ url: process.argv[2], apiKey: process.argv[3] });
console.log(JSON.stringify(await tickwire.quote("EURUSD")));
"""


@pytest.fixture
def key(server: Server) -> str:
    make_instrument(SYMBOL)
    put_quote(SYMBOL, 1.0841, 1.08424)
    return make_key(make_account(tier=make_tier("roomy", streams=10)))


def run(*words: str | Path, cwd: Path) -> str:
    ran = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_python_wheel_brings_a_command_that_asks(server: Server, key: str, tmp_path: Path) -> None:
    # A copy, because its build leaves folders beside the source.
    source = shutil.copytree("clients/python", tmp_path / "source")
    commands = install_alone(tmp_path / "environment", build_wheel(source, tmp_path / "built"))

    said = run(commands / "tickwire", "--url", server.url, "--key", key, "quote", SYMBOL, cwd=tmp_path)

    assert "1.0841" in said


def test_the_package_for_node_is_imported_where_nothing_else_is(
    built: None, server: Server, key: str, tmp_path: Path
) -> None:
    packed = run("npm", "pack", "--silent", "--pack-destination", tmp_path, cwd=CLIENT).strip()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "package.json").write_text('{"type": "module"}')
    (elsewhere / "ask.js").write_text(ASK)
    quiet = ("--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    run("npm", "install", *quiet, tmp_path / packed, cwd=elsewhere)

    quote = json.loads(run("node", "ask.js", server.url, key, cwd=elsewhere))

    assert quote["bid"] == 1.0841


def test_who_is_ended_after_each_reply_comes_back_ever_later(watch: Watch) -> None:
    answer = reply("A", "B", epoch="e", positions={"A": 1, "B": 1})
    moments = list[float]()
    with serving(says(answer, then=4500)) as service, watch(service.url):
        for _ in range(4):
            service.asked()
            moments.append(time.monotonic())
    waits = [later - earlier for earlier, later in zip(moments[:-1], moments[1:], strict=True)]
    # The third wait is half of a second at least, the first three quarters of that at most.
    assert waits[2] >= 0.5


def test_who_has_too_many_streams_comes_back_when_the_service_says(watch: Watch) -> None:
    error = {"code": "stream_limit_exceeded", "message": "No more.", "status": 429, "retry_after": 5}
    refused = {"type": "error", "error": error, "fatal": True, "retry": True, "time": 1}
    with serving(says(refused, then=4429)) as service, watch(service.url):
        service.asked()
        began_s = time.monotonic()
        service.asked()
    assert time.monotonic() - began_s >= 5


@contextmanager
def frozen_service() -> Iterator[tuple[str, list[float]]]:
    """It answers each subscribe and does nothing more, as a process that is stopped: not even a close is
    answered. Its address, and when clients came."""
    came: list[float] = []
    answer = json.dumps(reply("A", "B", epoch="e", positions={"A": 1, "B": 1})).encode()
    with ExitStack() as open_, socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection = open_.enter_context(listener.accept()[0])
                except OSError:
                    return
                protocol, requests = ServerProtocol(), list[Request]()
                while not requests:
                    protocol.receive_data(connection.recv(65_536))
                    requests = [each for each in protocol.events_received() if isinstance(each, Request)]
                protocol.send_response(protocol.accept(requests[0]))
                protocol.send_text(answer)
                came.append(time.monotonic())
                connection.sendall(b"".join(protocol.data_to_send()))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", came
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE_S)


def test_who_hears_nothing_goes_elsewhere_within_25_s(watch: Watch) -> None:
    with frozen_service() as (url, came), watch(url):
        wait_until(lambda: len(came) == 2)
    assert came[1] - came[0] <= 25
