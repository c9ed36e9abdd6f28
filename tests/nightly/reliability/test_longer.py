"""What the gate shows once or a few times, again and again, and how soon some of it is over."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.archive.test_killed import installation as archiving
from tests.archive.test_killed import keep_killing
from tests.patience import wait_until
from tests.reliability.access.test_revocation import edit_tier, servers
from tests.reliability.access.test_revocation import revoke_everywhere as revoke
from tests.reliability.clients.traffic import Asking
from tests.reliability.conftest import Tell
from tests.reliability.engine import test_kill as engine
from tests.reliability.restarts.test_shutdown import stop_with_all_under_way
from tests.reliability.resuming import test_cut, test_restart
from tests.reliability.resuming.test_cut import SYMBOLS, Run
from tests.reliability.services.frozen import frozen
from tests.reliability.services.haproxy import haproxy, under_way
from tests.reliability.services.processes import Installation, Process
from tests.reliability.services.stream_services import StreamService, streaming
from tests.reliability.signals import test_kill as signals
from tests.reliability.signals import test_watcher as watcher
from tests.reliability.streams import test_descriptors, test_hostile_frames
from tests.reliability.streams.test_hostile_frames import service

LAST_WRITE, FRAMES, EXAMPLES = 100, 20_000, 6_000
SOCKETS, EXIT_WITHIN_S = 200, 30.0
HOLDS_WITHIN_S, REVOCATIONS = 2.0, 5
TERM, KILL = signal.SIGTERM, signal.SIGKILL
__all__ = ["archiving", "servers", "service"]


@pytest.mark.row("5", "no acknowledged tick lost, none duplicated, none corrupted")
def test_a_server_that_is_killed_six_times_keeps_every_tick(embedded: Installation, tell: Tell) -> None:
    engine.kill_again_and_again(embedded, tell, rounds=6)


@pytest.mark.row("5", "no acknowledged signal lost, none duplicated, the ledger intact")
def test_no_signal_is_lost_at_any_of_a_hundred_writes(either: Installation, tell: Tell) -> None:
    assert signals.check_lives(either, "AGAIN", LAST_WRITE, tell).acts > LAST_WRITE


@pytest.mark.row("5", "every signal closes as it would have without a kill, and only once")
def test_each_signal_closes_once_over_six_kills(embedded: Installation, tell: Tell, seed: int) -> None:
    watcher.kill_again_and_again(embedded, tell, seed, rounds=6)


@pytest.mark.row("12–14", "no gaps, no duplicates, every client recovers")
def test_every_message_arrives_once_over_sixty_cuts_of_each_client(
    either: Installation, seed: int, tell: Tell
) -> None:
    with streaming(either, 1 + bool(either.redis_url), SYMBOLS) as running:
        test_cut.check(Run(running, seed), 60, tell)


@pytest.mark.row("12", "across restarts of one process: no gaps, no duplicates, every client recovers")
@pytest.mark.parametrize("ends", [(TERM, signal.SIGINT), (KILL, KILL)], ids=["ended", "killed"])
def test_clients_resume_across_restarts_of_either_kind(
    embedded: Installation, tell: Tell, ends: tuple[signal.Signals, ...]
) -> None:
    test_restart.check(embedded, ends, tell)


@pytest.mark.row("35", f"exit within {EXIT_WITHIN_S:g} s")
def test_a_process_with_open_streams_and_requests_exits_in_time(either: Installation, tell: Tell) -> None:
    codes, _, took_s = stop_with_all_under_way(either, TERM, SOCKETS)
    tell(f"exited after {took_s:.1f} s")
    assert codes == {1012: SOCKETS}
    assert took_s <= EXIT_WITHIN_S


@pytest.mark.row("36", "no REST request failed, no signal lost")
def test_control_requests_to_a_killed_process_fail(scaled: Installation, tmp_path: Path, tell: Tell) -> None:
    asking, has_ended = Asking("/api/signals", scaled.make_key()), threading.Event()
    with (
        scaled.serve(2) as webs,
        haproxy(tmp_path, [web.port for web in webs]) as front,
        ThreadPoolExecutor(len(webs)) as threads,
        frozen(web.pid for web in webs),
    ):
        # None of them answers, so that each gets one.
        for _ in webs:
            threads.submit(asking.run, front, has_ended)
        wait_until(lambda: all(under_way(front, web.port) for web in webs))
        has_ended.set()
        os.kill(webs[0].pid, KILL)
    tell(f"killed: {dict(asking.seen)}")
    assert asking.seen.total() - asking.seen["200"] == 1


@pytest.mark.row("63, sockets' numbers", "no frame sent to another socket, nothing left behind")
def test_of_twenty_thousand_frames_none_is_sent_to_a_reused_number(
    embedded: Installation, tell: Tell, seed: int
) -> None:
    test_descriptors.check(embedded, tell, seed, FRAMES)


@pytest.mark.row("5", "no tick that the database knows is missing in the archive")
def test_a_server_killed_again_and_again_keeps_each_tick_that_the_database_knows(
    archiving: Installation,  # noqa: F811 - the fixture
) -> None:
    keep_killing(archiving, 30)


@pytest.mark.row("17", "no wrong code, no unhandled exception")
@pytest.mark.parametrize("path", test_hostile_frames.PATHS)
def test_thousands_of_random_messages_get_a_reply_or_an_error(
    service: StreamService,  # noqa: F811 - the fixture
    path: str,
    seed: int,
    tell: Tell,
) -> None:
    test_hostile_frames.check(service, path, seed, EXAMPLES, tell)


@pytest.mark.row("15, 16", "in effect everywhere within 2 s")
@pytest.mark.parametrize("number", [0, 1], ids=["nudged", "polling"])
def test_a_decision_holds_within_two_seconds(
    scaled: Installation,
    servers: list[Process],  # noqa: F811 - the fixture
    number: int,
    tell: Tell,
) -> None:
    one = [servers[number]]
    took_s = max(revoke(scaled, one) for _ in range(REVOCATIONS))
    edited_s = edit_tier(scaled, one)
    tell(f"slowest of {REVOCATIONS} revocations {took_s * 1000:.0f} ms, a tier {edited_s * 1000:.0f} ms")
    assert max(took_s, edited_s) < HOLDS_WITHIN_S
