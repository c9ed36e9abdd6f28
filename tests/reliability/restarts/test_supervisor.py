"""Whatever its workers die of, a host goes on serving; and nothing of it is left when it is killed itself."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import httpx
import pytest

from tests.patience import wait_until
from tests.programs.services import redis
from tests.reliability.clients.swarm import Listener, listen_many
from tests.reliability.conftest import Tell
from tests.reliability.services.frozen import frozen
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation, http
from tests.reliability.services.supervised import Supervised, clients_of, command_of, supervised

SOCKETS = 20
pytestmark = pytest.mark.row("supervisor", "the service survives the death of its workers")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> PrivatePostgres:
    return PrivatePostgres(tmp_path_factory.mktemp("supervised"))


@pytest.fixture(scope="module")
def running(database: PrivatePostgres) -> Iterator[ExitStack]:
    """Close it to stop the database, enter `database.running()` again to start it."""
    with ExitStack() as stack:
        stack.enter_context(database.running())
        yield stack


@pytest.fixture(scope="module")
def installation(database: PrivatePostgres, running: ExitStack) -> Iterator[Installation]:
    with redis(database.directory) as url:
        yield Installation(database.directory, database.url, url)


@pytest.fixture(scope="module")
def key(installation: Installation) -> str:
    return installation.make_key(streams=1_000, requests_per_minute=1_000_000)


@pytest.fixture(scope="module")
def host(installation: Installation) -> Iterator[Supervised]:
    """One for all; the last test kills it."""
    with supervised(installation) as host:
        yield host


async def listen_to_each(host: Supervised, key: str) -> dict[int, list[Listener]]:
    """As many to one worker as to the other: who is stopped lets nobody in."""
    message = {"action": "subscribe", "api_key": key}
    heard: dict[int, list[Listener]] = {}
    for pid in host.workers:
        with frozen(other for other in host.workers if other != pid):
            heard[pid] = await listen_many([host.server.port], "/ws/signals", message, SOCKETS // 2)
    return heard


def held_by(pid: int, port: int, listeners: Sequence[Listener]) -> int:
    return len(clients_of(pid, port) & {one.transport.get_extra_info("sockname")[1] for one in listeners})


def ended(listeners: Sequence[Listener]) -> int:
    return sum(one.ended.done() for one in listeners)


def test_sighup_replaces_the_workers_without_failing_a_request(
    host: Supervised, key: str, tell: Tell
) -> None:
    before, statuses = set(host.workers), []
    host.send(signal.SIGHUP)
    # A connection for each: those that the old workers keep open are theirs to close.
    headers = {"X-API-Key": key, "Connection": "close"}
    while before & set(host.workers) or len(host.serving) != 2:
        statuses.append(http.get(f"{host.server.url}/api/limits", headers=headers).status_code)
    tell(f"{len(statuses)} requests answered while both workers were replaced")
    assert set(statuses) == {200}


async def test_a_worker_that_dies_during_a_database_outage_is_restarted_afterwards(
    database: PrivatePostgres, running: ExitStack, host: Supervised, key: str, tell: Tell
) -> None:
    heard = await listen_to_each(host, key)
    victim, other = heard
    port = host.server.port
    assert [held_by(pid, port, listeners) for pid, listeners in heard.items()] == [SOCKETS // 2] * 2
    # In threads: the sockets have pings to answer meanwhile.
    await asyncio.to_thread(lose_the_database, host, victim, running)
    at_once = ended(heard[victim]), ended(heard[other])
    await asyncio.to_thread(find_the_database, host, other, running, database)
    in_the_end = ended(heard[victim]), ended(heard[other])
    still_held = held_by(other, port, heard[other])
    for listener in heard[other]:
        await listener.leave()
    tell(
        f"{at_once[0]} of {SOCKETS} sockets belonged to the killed worker; closed on the other:"
        f" {in_the_end[1]}"
    )
    assert f"(pid {victim}) was killed by SIGKILL" in host.said
    assert at_once == in_the_end == (SOCKETS // 2, 0)
    assert still_held == SOCKETS // 2


def lose_the_database(host: Supervised, victim: int, running: ExitStack) -> None:
    before = host.said.count("waits for the database")
    running.close()
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: host.said.count("waits for the database") > before)


def find_the_database(host: Supervised, other: int, running: ExitStack, database: PrivatePostgres) -> None:
    assert host.process.poll() is None
    assert host.serving == [other]
    running.enter_context(database.running())
    host.wait_for(2)
    assert other in host.serving


def test_workers_end_with_their_killed_supervisor_even_if_one_hangs_on_startup(
    running: ExitStack, host: Supervised
) -> None:
    lose_the_database(host, host.workers[0], running)
    workers = host.workers
    assert host.serving
    host.process.kill()
    host.process.wait()
    wait_until(lambda: not any(command_of(pid) for pid in workers))
    with pytest.raises(httpx.ConnectError):
        host.server.ask("/healthz")
