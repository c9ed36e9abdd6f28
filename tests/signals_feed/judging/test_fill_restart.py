"""Kills, failovers and a database that is away between the arm, the fill and the end: each is written once,
by the tick by which it would have been otherwise."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
import time_machine
from django.db import OperationalError
from django.db.models import F
from django.utils import timezone

from core.threads import in_thread
from instruments.models import Instrument
from market.models import EngineState
from market.prices.records import AnyRecord
from market.store.lease import LeaseLost
from signals_feed.decisions import clock_is_off
from signals_feed.ledger.ledger import database_clock
from signals_feed.ledger.verify import verify
from signals_feed.models import LIFETIME, Evidence, Undelivered, WatchMark
from tests.databases.queries import around_statements
from tests.factories import NOON, make_calendar, make_user
from tests.signals_feed.published_signals import make_waiting

from .test_fill import ARMED, FILL, FILLED, Step, Story, told
from .test_restart import lose_the_lease, minute_after
from .watched_engine import TAPE, WatchedEngine, killed, run

pytestmark = [pytest.mark.usefixtures("instrument"), pytest.mark.services]
Clock = time_machine.Traveller


def armed_and_killed(clock: Clock, *steps: Step, flush_after: int = 0, ahead_ms: int = 0) -> list[AnyRecord]:
    """Armed, then written, then nothing more is written to the ledger; returns what the journal has since the
    last checkpoint, which follows so many of the steps."""

    async def act(watched: WatchedEngine) -> None:
        watched.run_ahead(ahead_ms)
        story = Story(watched, clock)
        await story.begin()
        await watched.stall()
        for number, step in enumerate((None, *steps)):
            if step is not None:
                story.tick(*step)
            if number == flush_after:
                assert await watched.runner.writer.flush()
                watched.records.clear()

    return killed(act, "one")


async def go(watched: WatchedEngine, clock: Clock, *steps: Step) -> None:
    await Story(watched, clock).go(*steps)


def filled_by() -> int:
    return Evidence.objects.get(kind="fill").seq


@pytest.mark.parametrize("flush_after", [0, 1, 2, 3], ids=["journal", "arm", "fill", "end"])
def test_what_was_decided_before_a_kill_is_written_after_it(clock: Clock, flush_after: int) -> None:
    tail = armed_and_killed(clock, (500, 1.0843), FILL, (5, 1.0805), flush_after=flush_after)
    assert told() == ARMED
    run(partial(go, clock=clock), tail, epoch="one")
    assert told() == [*FILLED, "close"]
    assert filled_by() == 3
    assert (verify().fault, Undelivered.objects.count()) == ("", 0)


def test_an_engine_that_goes_on_in_the_same_numbering_fills_by_the_arm_of_the_first(clock: Clock) -> None:
    tail = armed_and_killed(clock, (500, 1.0843))
    run(lambda watched: go(watched, clock, (500, 1.0845)), tail, epoch="one")
    assert (told(), filled_by()) == (FILLED, 3)


@pytest.mark.parametrize("ahead_ms", [0, 3_600_000])
def test_an_engine_of_another_numbering_arms_anew_before_its_first_tick(clock: Clock, ahead_ms: int) -> None:
    """It has not heard yet how far the clocks are apart."""
    armed_and_killed(clock, (500, 1.0843), flush_after=1, ahead_ms=ahead_ms)

    async def act(watched: WatchedEngine) -> None:
        watched.run_ahead(ahead_ms)
        await go(watched, clock, (999, 1.0845), (1, 1.0846))

    run(act, epoch="two")
    assert told() == [*ARMED, "arm fill:2", "fill"]
    assert filled_by() == 4


@pytest.mark.parametrize("ahead_ms", [0, 3_600_000])
@pytest.mark.parametrize(
    ("steps", "entries", "end"),
    [
        ([], [*ARMED, "arm fill:2", "fill"], None),
        ([FILL], [*FILLED, "close"], ("stop_loss", "1.0795", "candle")),
        (
            [FILL, ("ask",)],
            [*FILLED, "close_request", "arm close_request:1", "arm close_request:2", "close"],
            ("manual", "1.0846", "tick"),
        ),
    ],
    ids=["waits for its fill", "is open", "is to be closed"],
)
def test_after_an_engine_that_does_not_follow_these_rules(
    clock: Clock, instrument: Instrument, steps: list[Step], entries: list[str], end: Any, ahead_ms: int
) -> None:
    """It wrote its own ticks in the same numbering, and a mark as if it had judged by them."""

    async def act(watched: WatchedEngine) -> None:
        watched.run_ahead(ahead_ms)
        story = Story(watched, clock)
        await story.begin()
        await story.go(*steps)
        assert await watched.runner.writer.flush()

    async def after(watched: WatchedEngine) -> None:
        assert (watched.runner.epoch() == "one") == (steps == [FILL])
        watched.run_ahead(ahead_ms)
        await go(watched, clock, (999, 1.0845), (1, 1.0846))

    killed(act, "one")
    EngineState.objects.update(position=F("position") + 1)
    WatchMark.objects.update(watched_until=NOON + timedelta(minutes=4))
    number = 2 - ahead_ms // 60_000
    minute_after(instrument, number, low="1.0795" if steps == [FILL] else "1.0830")
    clock.move_to(NOON + timedelta(minutes=5))
    run(after, epoch="one")
    assert told() == entries
    exit_ = Evidence.objects.filter(kind="exit").select_related("signal").first()
    found = exit_ and (exit_.signal.close_reason, f"{exit_.signal.close_price.normalize()}", exit_.source)
    assert found == end
    if FILL in steps:
        # It has ticks only, and lacks those of this minute.
        TAPE.clear()


def test_how_far_the_price_went_before_a_kill_is_known_after_it(clock: Clock) -> None:
    async def act(watched: WatchedEngine) -> None:
        story = Story(watched, clock)
        await story.begin()
        await story.go(FILL, (5, 1.0830))
        await watched.runner.writer.flush()
        await story.go((5, 1.0885), (5, 1.0845))
        with around_statements(refuse):
            await watched.runner.writer.flush()
        await watched.runner.writer.flush()

    killed(act, "one")
    run(lambda watched: go(watched, clock, (5, 1.0805)), epoch="two")
    exit_ = Evidence.objects.get(kind="exit")
    assert (exit_.best, exit_.worst) == (Decimal("1.0885"), Decimal("1.0805"))


def test_feed_that_filled_it_is_named_by_its_end_though_the_engine_died_in_between(clock: Clock) -> None:
    async def act(watched: WatchedEngine) -> None:
        story = Story(watched, clock)
        await story.begin()
        assert await watched.runner.writer.flush()
        await story.go(FILL)

    killed(act, "one")
    run(lambda watched: go(watched, clock, ("priced_by", "kraken"), (5, 1.0805)), epoch="two")
    assert Evidence.objects.get(kind="exit").feed == "kraken+push"


@pytest.mark.served
@pytest.mark.parametrize("ahead_ms", [0, 3_600_000, -3_600_000])
@pytest.mark.parametrize("after_ms", [5, 100_000])
@pytest.mark.parametrize("epoch", ["one", "two"])
def test_a_change_of_kind_right_after_a_restart_ends_it_at_the_last_price(
    clock: Clock, epoch: str, after_ms: int, ahead_ms: int
) -> None:
    """The stored quote says less than the tick that it was, which confirms it."""

    async def act(watched: WatchedEngine) -> None:
        clock.shift(3 * 3_600)
        watched.run_ahead(ahead_ms)
        story = Story(watched, clock)
        await story.begin()
        await story.go(FILL, (after_ms, 1.0885))
        assert await watched.runner.writer.flush()

    killed(act, "one")
    clock.shift(1)
    run(lambda watched: Story(watched, clock).reprice(), epoch=epoch)
    exit_ = Evidence.objects.get(kind="exit")
    assert (exit_.bid, exit_.signal.close_price) == (Decimal("1.0885"), Decimal("1.0885"))
    assert (exit_.feed, exit_.source, verify().fault) == ("push:stored+push", "tick", "")


def refuse(_: str, __: Callable[[], Any]) -> Any:
    raise OperationalError("the database is away")


@pytest.mark.parametrize("is_armed", [True, False])
def test_while_the_database_is_away_ticks_fill_and_close_as_otherwise(clock: Clock, is_armed: bool) -> None:
    async def act(watched: WatchedEngine) -> None:
        story = Story(watched, clock)
        await watched.stall()
        await story.begin(is_settled=is_armed)
        closer = watched.watcher.closer
        assert closer is not None
        if not is_armed:
            await watched.events.read()
            await watched.watcher.look()
        for step in ((999, 1.0850), (1, 1.0844), (5, 1.0805)):
            story.tick(*step)
        with around_statements(refuse), pytest.raises(OperationalError):
            await closer.work_off()
        assert await in_thread(told) == (ARMED if is_armed else ["publish"])
        # The checkpoint has what follows, whether or not the ledger has the arm.
        assert await watched.runner.writer.flush()
        assert await in_thread(Undelivered.objects.count) == 1
        await watched.settle()

    run(act)
    assert (told(), filled_by()) == ([*FILLED, "close"], 3)
    assert verify().fault == ""


def test_what_follows_from_an_arm_that_is_still_to_be_written_is_in_the_checkpoint(clock: Clock) -> None:
    async def act(watched: WatchedEngine) -> None:
        story = Story(watched, clock)
        await watched.stall()
        await story.begin(is_settled=False)
        await watched.events.read()
        await watched.watcher.look()
        story.tick(*FILL)
        story.tick(5, 1.0805)
        assert await watched.runner.writer.flush()

    killed(act, "one")
    assert told() == ["publish"]
    run(WatchedEngine.settle, epoch="one")
    assert (told(), filled_by()) == ([*FILLED, "close"], 2)


def test_what_is_too_old_for_the_ledger_is_told_and_decided_once_more(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """The engine's clock is that of the test, days before that of the database, until it is set."""
    clock_is_off.forget()

    def publish() -> None:
        now = datetime.fromisoformat(database_clock())
        make_waiting(user=make_user(), published_at=now, expires_at=now + LIFETIME)

    async def act(watched: WatchedEngine) -> None:
        story = Story(watched, clock)
        await watched.watcher.loop.stop()
        await story.change("calendar", await in_thread(make_calendar))
        story.tick(0, 1.0841)
        await in_thread(publish)
        # On SQLite, the test's clock is also that by which a beat is dated.
        await in_thread(EngineState.objects.update, beat_at=timezone.now() + LIFETIME)
        await watched.settle()
        assert await in_thread(told) == ["publish"]
        assert "signals_feed.decisions" in {each.name for each in caplog.records}
        clock.move_to(datetime.fromisoformat(await in_thread(database_clock)))
        await watched.settle()

    run(act)
    assert told() == ARMED
    assert "over after" in caplog.text


def test_engine_that_lost_the_lease_arms_and_fills_nothing(clock: Clock) -> None:
    async def act(watched: WatchedEngine) -> None:
        story = Story(watched, clock)
        await watched.stall()
        await story.begin()
        await in_thread(lose_the_lease)
        story.tick(1_000, 1.0844)
        assert watched.watcher.closer is not None
        with pytest.raises(LeaseLost):
            await watched.watcher.closer.work_off()

    run(act)
    # Nobody has the tick.
    TAPE.pop()
    assert told() == ARMED
