"""One writer at a time, whatever becomes of the one before."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
import time_machine
from django.db import OperationalError, connection
from django.db.models import F

from core.clock import machine_ms
from core.database import database
from core.threads import in_thread
from market.engine import writer
from market.engine.engine import Engine
from market.engine.listeners import EngineStart
from market.engine.writer import BEAT_AFTER_S, STANDS_STILL_S, LeaseBeats
from market.models import Candle, EngineState, LastQuote
from market.prices.candles import PriceBar
from market.prices.quotes import Prices
from market.prices.records import JournalPosition, Tick
from market.store import checkpoints
from market.store.checkpoints import Checkpoint
from market.store.lease import (
    GONE_S,
    LONG_GONE,
    STEADY_S,
    Lease,
    LeaseLost,
    clock_of_writer_s,
    name_of,
)
from tests.databases.queries import around_statements, count_queries
from tests.factories import make_instrument
from tests.market.postgresql import in_place
from tests.market.running import IdleListener, make_runner
from tests.market.ticking import NOON_MS
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.services.private_servers import PrivatePostgres

pytestmark = [pytest.mark.served, pytest.mark.django_db(transaction=True)]
ELSEWHERE = "another-host:1:abc"


def make_state(writer: str = ELSEWHERE, silent: timedelta = timedelta()) -> None:
    beat_at = database().now() - silent
    EngineState.objects.create(pk=1, writer=writer, beats=7, beat_at=beat_at, epoch="e1", position=41)


class Waiting(Lease):
    """A stand-in, with a clock that no change of the date moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        super().__init__(lambda: self.now)

    def looks(self, times: int, every_s: float) -> list[bool]:
        """Whether it got the lease at each of them."""
        answers = []
        for _ in range(times):
            answers.append(self.take() is not None)
            self.now += every_s
        return answers


def refuse(sql: str, _: Callable[[], Any]) -> Any:
    raise OperationalError("the database is away")


def beat() -> None:
    EngineState.objects.update(beats=F("beats") + 1)


def test_first_to_come_gets_it_and_may_ask_again_and_the_second_does_not() -> None:
    make_state("")
    holder = Lease()
    assert holder.take() == JournalPosition("e1", 41)
    assert Lease().take() is None
    assert holder.take() is not None


def test_left_lease_is_free_at_once_and_leaving_what_another_holds_changes_nothing() -> None:
    holder, other = Lease(), Lease()
    holder.take()
    other.leave()
    assert EngineState.objects.get().writer == holder.writer
    holder.leave()
    assert other.take() is not None


def dead() -> str:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return name_of(child)


def dead_in_another_namespace() -> str:
    """Two containers with one host name: each counts its processes by itself."""
    host, pid, mark = dead().rsplit(":", 2)
    return f"{host}:{pid}:elsewhere.{mark}"


def alive() -> str:
    return name_of(os.getppid())


def dead_whose_number_another_got() -> str:
    named, started, rules = alive().rsplit(".", 2)
    return f"{named}.{int(started) - 1}.{rules}"


def named_by_an_earlier_version() -> str:
    """It counts by its number alone."""
    return alive().rsplit(".", 2)[0]


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("name", "is_waited_for"),
    [
        (dead, False),
        (dead_in_another_namespace, True),
        (alive, True),
        (dead_whose_number_another_got, False),
        (named_by_an_earlier_version, True),
    ],
)
def test_process_of_this_machine_is_waited_for_while_it_lives(
    name: Callable[[], str], is_waited_for: bool
) -> None:
    make_state(name())
    assert (Lease().take() is None) is is_waited_for


@pytest.mark.usefixtures("clock")
def test_writer_tells_how_far_its_clock_is_from_the_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    lease = Lease()
    monkeypatch.setattr("core.clock.now_ms", lambda: machine_ms() + 3_600_000)
    assert lease.take() is not None
    assert (clock_of_writer_s() or 0) > 3_000
    monkeypatch.setattr("core.clock.now_ms", lambda: machine_ms() - 3_600_000)
    lease.beat(JournalPosition("e1", 42))
    assert (clock_of_writer_s() or 0) < -3_000
    EngineState.objects.update(writer=named_by_an_earlier_version())
    assert clock_of_writer_s() is None


def test_silent_writer_is_replaced_after_a_while_and_one_that_beats_never() -> None:
    make_state()
    waiting = Waiting()
    for _ in range(20):
        assert waiting.looks(1, GONE_S + 1) == [False]
        beat()
    assert waiting.looks(4, GONE_S / 2) == [False, False, False, True]


def test_outage_of_the_database_does_not_cost_the_writer_its_lease(clock: time_machine.Traveller) -> None:
    make_state()
    waiting = Waiting()
    waiting.looks(1, 3600)
    # Nobody could ask or write for an hour; the first question after it finds a beat it has not seen.
    clock.shift(3600)
    beat()
    assert waiting.take() is None


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("outage", ["refused", "hung"])
def test_writer_gets_its_time_after_an_outage_though_the_stand_in_asks_first(outage: str) -> None:
    make_state()
    waiting = Waiting()
    waiting.looks(2, 1)
    if outage == "refused":
        with around_statements(refuse), pytest.raises(OperationalError):
            waiting.take()
    waiting.now += 600
    answers = waiting.looks(2, 1)
    beat()
    assert [*answers, *waiting.looks(1, 1)] == [False, False, False]


@pytest.mark.usefixtures("clock")
def test_writer_that_does_not_come_back_after_an_outage_is_replaced_all_the_same() -> None:
    make_state()
    waiting = Waiting()
    waiting.take()
    with around_statements(refuse), pytest.raises(OperationalError):
        waiting.take()
    # Each look takes long, too.
    assert any(waiting.looks(10, 2 * STEADY_S))


@pytest.mark.usefixtures("clock")
def test_writer_gone_for_long_is_replaced_at_the_first_look_at_a_file() -> None:
    make_state(silent=2 * LONG_GONE)
    # A server may have been away meanwhile, a file cannot have been.
    assert (Lease().take() is not None) == (connection.vendor == "sqlite")


@pytest.mark.usefixtures("clock")
def test_writer_that_lives_is_not_taken_for_gone_because_the_clock_was_set() -> None:
    make_state(alive(), silent=2 * LONG_GONE)
    assert Waiting().looks(4, STEADY_S) == [False, False, False, True]


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[PrivatePostgres]:
    made = PrivatePostgres(tmp_path)
    with made.running(), in_place(made.url):
        yield made


@pytest.mark.usefixtures("postgres")
def test_writer_in_a_shared_database_is_watched_however_long_it_was_silent() -> None:
    """A stand-in that starts right after an outage of the database knows nothing of that."""
    make_state(silent=2 * LONG_GONE)
    first, *later = Waiting().looks(round(2 * GONE_S), 1)
    assert not first
    assert any(later)


def test_write_after_the_lease_was_lost_leaves_nothing() -> None:
    instrument = make_instrument("EURUSD")
    old = Lease()
    old.take()
    EngineState.objects.update(writer=ELSEWHERE)
    rows = [(instrument.pk, "1m", PriceBar(NOON_MS, *[1.0] * 7), "bid")]  # type: ignore[arg-type]
    last = {instrument.pk: Checkpoint(Tick("EURUSD", 1.0, 1.1, NOON_MS), None)}

    with pytest.raises(LeaseLost):
        checkpoints.write(rows, last, old, JournalPosition("e2", 50))
    assert (Candle.objects.count(), LastQuote.objects.count()) == (0, 0)
    assert EngineState.objects.get().epoch == ""


def test_write_of_the_holder_stays_with_its_place() -> None:
    instrument = make_instrument("EURUSD")
    holder = Lease()
    holder.take()
    checkpoint = Checkpoint(Tick("EURUSD", 1.0, 1.1, NOON_MS), None, 12, 3, {"day": 1})
    checkpoints.write([], {instrument.pk: checkpoint}, holder, JournalPosition("e2", 50))
    state, quote = EngineState.objects.get(), LastQuote.objects.get()
    assert (state.epoch, state.position, state.beats) == ("e2", 50, 2)
    assert (quote.bid, quote.seq, quote.flow_seq, quote.flow_state) == (Decimal(1), 12, 3, {"day": 1})


class Slow(IdleListener):
    """Who takes as long to begin as somebody has to see the engine alive twice."""

    async def begin(self, start: EngineStart) -> None:
        first = await in_thread(beats)
        async with asyncio.timeout(PATIENCE_S):
            while await in_thread(beats) < first + 2:  # noqa: ASYNC110 - it is the database that is asked
                await asyncio.sleep(0.05)


def beats() -> int:
    return EngineState.objects.get().beats


def test_own_flush_between_a_look_and_the_next_beat_costs_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    lease, look = Lease(), EngineState.objects.get_or_create
    assert lease.take() is not None

    def look_and_flush(**fields: Any) -> tuple[EngineState, bool]:
        found = look(**fields)
        lease.beat(JournalPosition("e1", 42))
        return found

    monkeypatch.setattr(EngineState.objects, "get_or_create", look_and_flush)
    assert lease.take() is not None
    assert EngineState.objects.get().position == 42


async def test_engine_that_loads_for_long_keeps_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "STANDS_STILL_S", PATIENCE_S)
    runner = make_runner(Engine(Prices("bid")), listeners=[Slow()])
    assert await runner.writer.try_lease()
    await runner.start()
    assert runner.is_running
    # Also while the loop is busy.
    with ThreadPoolExecutor(1) as other:
        known = other.submit(beats).result()
        wait_until(lambda: other.submit(beats).result() > known)
    await runner.stop()


def test_lease_is_kept_while_the_loop_turns_and_its_loss_is_told() -> None:
    lease = Waiting()
    assert lease.take() is not None
    lease.is_held, beating = True, LeaseBeats(lease, lambda: None)
    known, told = beats(), []
    still_s = STANDS_STILL_S
    for after_s, turned_s in ((BEAT_AFTER_S, 0), (still_s, 0), (2 * still_s, still_s - 1)):
        lease.now, beating.turned_s = 1000 + after_s, 1000.0 + turned_s
        told.append((beating.look(lease.now), beats() - known))
    assert told == [(True, 0), (True, 1), (True, 1)]
    beating.turned_s = lease.now
    EngineState.objects.update(writer=ELSEWHERE)
    assert not beating.look(lease.now)


LOCK = "SELECT 1 FROM market_enginestate WHERE id = 1 FOR UPDATE"

# A process that vanishes inside a transaction, as when its host loses power: what an engine and a revocation
# hold between a statement and their commit stays locked.
VANISHES = f"""
import sys, django
django.setup()
from django.db import connection, transaction
from core.events.outbox import ControlEvent
with transaction.atomic(), connection.cursor() as cursor:
    ControlEvent.objects.publish("test")
    cursor.execute("{LOCK}")
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def vanished(url: str, **environment: str) -> Iterator[None]:
    settings = {"DATABASE_URL": url, "REDIS_URL": "", "DJANGO_SETTINGS_MODULE": "config.settings"}
    with subprocess.Popen(
        [sys.executable, "-c", VANISHES],
        env=os.environ | settings | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.kill()


def test_what_a_vanished_process_held_is_free_again(postgres: PrivatePostgres) -> None:
    EngineState.objects.create(pk=1, writer="another-host:1:abc")
    with (
        vanished(postgres.url, DATABASE_IDLE_TRANSACTION_S="1"),
        psycopg.connect(postgres.url, autocommit=True) as other,
    ):
        other.execute(f"SET lock_timeout = '{PATIENCE_S:.0f}s'")
        other.execute("UPDATE market_enginestate SET beats = 8 WHERE id = 1")
        other.execute("SELECT pg_advisory_lock(7424001)")
    assert EngineState.objects.get().beats == 8


def test_stand_in_waits_for_nobody_who_holds_the_lease_of_the_gone(postgres: PrivatePostgres) -> None:
    EngineState.objects.create(pk=1, writer="")
    with psycopg.connect(postgres.url) as gone:
        gone.execute(LOCK)
        with count_queries() as asked:
            assert Lease().take() is None
        gone.rollback()
    assert asked
    assert Lease().take() is not None


def test_stand_in_that_watches_a_living_writer_locks_nothing(postgres: PrivatePostgres) -> None:
    writer, stand_in = Lease(), Lease()
    assert writer.take() is not None
    with count_queries() as asked:
        assert stand_in.take() is None
    assert not [sql for sql in asked if "FOR UPDATE" in sql]
