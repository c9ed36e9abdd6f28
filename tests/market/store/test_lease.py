"""One writer at a time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.db import OperationalError, connection

from core.threads import in_thread
from market.engine.engine import Engine
from market.engine.listeners import EngineStart
from market.models import Candle, EngineState, LastQuote
from market.prices.candles import PriceBar
from market.prices.quotes import Prices
from market.prices.records import JournalPosition, Tick
from market.store import checkpoints
from market.store.checkpoints import Checkpoint
from market.store.lease import GONE_S, LONG_GONE, STEADY_S, Lease, LeaseLost, database_now
from market.store.process_names import name_of
from tests.databases.queries import around_statements
from tests.factories import make_instrument
from tests.market.postgresql import in_place
from tests.market.running import IdleListener, make_runner
from tests.market.ticking import NOON_MS
from tests.patience import PATIENCE_S
from tests.reliability.services.private_servers import PrivatePostgres

pytestmark = [pytest.mark.served, pytest.mark.django_db(transaction=True)]
ELSEWHERE = "another-host:1:abc"


def make_state(writer: str = ELSEWHERE, silent: timedelta = timedelta()) -> None:
    beat_at = database_now() - silent
    EngineState.objects.create(pk=1, writer=writer, beats=7, beat_at=beat_at, epoch="e1", position=41)


class Watch:
    """A clock that no change of the date moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def refuse(sql: str, _: Callable[[], Any]) -> Any:
    raise OperationalError("the database is away")


def beat() -> None:
    state = EngineState.objects.get()
    state.beats += 1
    state.save()


def test_first_to_come_gets_it_and_the_second_does_not() -> None:
    make_state("")

    assert Lease().take() == JournalPosition("e1", 41)
    assert Lease().take() is None


def test_holder_may_ask_again() -> None:
    holder = Lease()
    holder.take()

    assert holder.take() is not None


def test_left_lease_is_free_at_once() -> None:
    holder = Lease()
    holder.take()
    holder.leave()

    assert Lease().take() is not None


def test_leaving_what_another_holds_changes_nothing() -> None:
    holder, other = Lease(), Lease()
    holder.take()

    other.leave()

    assert EngineState.objects.get().writer == holder.writer


@pytest.mark.usefixtures("clock")
def test_dead_process_of_this_machine_is_not_waited_for() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    make_state(name_of(child))

    assert Lease().take() is not None


@pytest.mark.usefixtures("clock")
def test_process_that_another_namespace_knows_is_waited_for_whatever_its_number_is_here() -> None:
    """Two containers with one host name: each counts its processes by itself."""
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    host, pid, mark = name_of(child).rsplit(":", 2)
    make_state(f"{host}:{pid}:elsewhere.{mark}")

    assert Lease().take() is None


@pytest.mark.usefixtures("clock")
def test_live_process_of_this_machine_is_waited_for() -> None:
    make_state(name_of(os.getppid()))

    assert Lease().take() is None


@pytest.mark.usefixtures("clock")
def test_live_process_that_got_the_number_of_a_dead_one_is_not_waited_for() -> None:
    named, _, started = name_of(os.getppid()).rpartition(".")
    make_state(f"{named}.{int(started) - 1}")

    assert Lease().take() is not None


@pytest.mark.usefixtures("clock")
def test_name_of_an_earlier_version_counts_by_its_number_alone() -> None:
    make_state(name_of(os.getppid()).rpartition(".")[0])

    assert Lease().take() is None


@pytest.mark.usefixtures("clock")
def test_silent_writer_is_replaced_after_a_while() -> None:
    make_state()
    watch = Watch()
    waiting, answers = Lease(watch), []
    for _ in range(4):
        answers.append(waiting.take() is not None)
        watch.now += GONE_S / 2

    assert answers == [False, False, False, True]


@pytest.mark.usefixtures("clock")
def test_writer_that_beats_is_never_replaced() -> None:
    make_state()
    watch = Watch()
    waiting = Lease(watch)
    for _ in range(20):
        assert waiting.take() is None
        watch.now += GONE_S + 1
        beat()


def test_outage_of_the_database_does_not_cost_the_writer_its_lease(clock: time_machine.Traveller) -> None:
    make_state()
    watch = Watch()
    waiting = Lease(watch)
    waiting.take()
    # Nobody could ask or write for an hour; the first question after it finds a beat it has not seen.
    clock.shift(3600)
    watch.now += 3600
    beat()

    assert waiting.take() is None


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("outage", ["refused", "hung"])
def test_writer_gets_its_time_after_an_outage_though_the_stand_in_asks_first(outage: str) -> None:
    make_state()
    watch = Watch()
    waiting = Lease(watch)
    waiting.take()
    watch.now += 1
    waiting.take()
    if outage == "refused":
        with around_statements(refuse), pytest.raises(OperationalError):
            waiting.take()
    watch.now += 600

    answers = []
    for _ in range(2):
        answers.append(waiting.take() is not None)
        watch.now += 1
    beat()
    answers.append(waiting.take() is not None)

    assert answers == [False, False, False]


@pytest.mark.usefixtures("clock")
def test_writer_that_does_not_come_back_after_an_outage_is_replaced_all_the_same() -> None:
    make_state()
    watch = Watch()
    waiting = Lease(watch)
    waiting.take()
    with around_statements(refuse), pytest.raises(OperationalError):
        waiting.take()
    looks = 0
    while waiting.take() is None:
        looks += 1
        # Each look takes long, too.
        watch.now += 2 * STEADY_S
        assert looks < 10


@pytest.mark.usefixtures("clock")
def test_writer_gone_for_long_is_replaced_at_the_first_look_at_a_file() -> None:
    make_state(silent=2 * LONG_GONE)

    # A server may have been away meanwhile, a file cannot have been.
    assert (Lease().take() is not None) == (connection.vendor == "sqlite")


@pytest.mark.usefixtures("clock")
def test_writer_that_lives_is_not_taken_for_gone_because_the_clock_was_set() -> None:
    make_state(name_of(os.getppid()), silent=2 * LONG_GONE)
    watch = Watch()
    waiting = Lease(watch)

    answers = []
    for _ in range(4):
        answers.append(waiting.take() is not None)
        watch.now += STEADY_S

    assert answers == [False, False, False, True]


def test_writer_in_a_shared_database_is_watched_however_long_it_was_silent(tmp_path: Path) -> None:
    """A stand-in that starts right after an outage of the database knows nothing of that."""
    database = PrivatePostgres(tmp_path)
    with database.running(), in_place(database.url):
        make_state(silent=2 * LONG_GONE)
        watch = Watch()
        waiting = Lease(watch)

        assert waiting.take() is None
        while waiting.take() is None:
            watch.now += 1
            assert watch.now < Watch.now + 2 * GONE_S


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


def test_engine_that_loads_for_long_keeps_its_lease() -> None:
    async def run() -> bool:
        runner = make_runner(Engine(Prices("bid")), listeners=[Slow()])
        assert await runner.writer.try_lease()
        await runner.start()
        has_started = runner.is_running
        await runner.stop()
        return has_started

    assert asyncio.run(run())
