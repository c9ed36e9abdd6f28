"""By rules 2 the engine fills a signal after it was asked to: at which tick, and what follows from it. What
it wrote is what the judge says of the same ticks: that is asked after each test."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
import time_machine

from core.threads import in_thread
from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.models import Instrument, WithheldSource
from instruments.saving import pass_on_again, withhold
from market import runtime as market
from market.engine import SeriesEnding
from market.engine.importing.importer import keep_quote
from market.engine.venues.time_base import ANSWERED_MS
from market.prices import HistoryMinute, PriceBar
from market.prices.records import Tick, TickAccepted
from signals_feed import decisions
from signals_feed.contradictions import FILL_AFTER_MS, WRITTEN_WITHIN_MS
from signals_feed.decisions import CAUSES
from signals_feed.judge import ARM_WITHIN_MS
from signals_feed.judging.active_signals import CLOCK_AWAITED_MS
from signals_feed.judging.watcher import read_mark_ms
from signals_feed.ledger import ledger
from signals_feed.ledger.ledger import LedgerEntry, database_clock
from signals_feed.ledger.verify import verify
from signals_feed.models import LIFETIME, Evidence, Signal
from signals_feed.publishers.lookup import Scorecards, find
from signals_feed.publishing.actions import cancel, close_by_hand
from signals_feed.publishing.pages import quote_of
from signals_feed.record import NOT_ARMED, iso, ms_of
from tests.signals_feed.published_signals import make_waiting

from .watched_engine import TAPE, WatchedEngine, run

pytestmark = [pytest.mark.usefixtures("instrument"), pytest.mark.services]
ARMED = ["publish", "arm fill:1"]
FILLED = [*ARMED, "fill"]
Step = tuple[Any, ...]
FILL = (1_000, 1.0844)
HOUR_MS, LIFETIME_MS = 3_600_000, LIFETIME // timedelta(milliseconds=1)


def told() -> list[str]:
    entries = LedgerEntry.objects.order_by("position")
    return [f"{each.kind} {each.part}".strip() for each in entries]


class Story:
    """One signal, a buy at 1.0842 from 1.0810 to 1.0900, and what happens to it."""

    def __init__(self, watched: WatchedEngine, clock: time_machine.Traveller) -> None:
        self.watched, self.clock = watched, clock

    async def begin(self, *, is_settled: bool = True) -> None:
        # Nothing happens but what a test says.
        await self.watched.watcher.loop.stop()
        self.tick(0, 1.0841)
        await in_thread(make_waiting)
        if is_settled:
            await self.watched.settle()

    async def go(self, *steps: Step) -> None:
        for what, *how in steps:
            if isinstance(what, str):
                await getattr(self, what)(*how)
            else:
                self.tick(what, *how)
        await self.watched.settle()

    def tick(self, after_ms: int, bid: float, reason: str | None = None) -> None:
        self.clock.shift(after_ms / 1000)
        self.watched.tick(bid, bid + 0.0001, self.now_ms, reason=reason)

    @property
    def now_ms(self) -> int:
        return self.watched.now_ms()

    async def wait(self, ms: int) -> None:
        self.clock.shift(ms / 1000)
        await self.watched.settle()

    async def ask(self) -> None:
        await self.watched.settle()
        signal = await in_thread(Signal.objects.select_related("instrument", "user").get)
        await in_thread(close_by_hand, signal, by=signal.user, quote=None)
        await self.watched.settle()

    async def staff(self) -> None:
        await self.watched.settle()
        await in_thread(cancel, await in_thread(Signal.objects.get), reason="wrong symbol", by="alice")
        await self.watched.settle()

    async def staff_unheard(self) -> None:
        await in_thread(cancel, await in_thread(Signal.objects.get), reason="wrong symbol", by="alice")

    async def change(self, name: str, value: object) -> None:
        await in_thread(partial(Instrument.objects.update, **{name: value}))
        await in_thread(catalogue.load_now)
        await self.watched.settle()

    async def withhold(self) -> None:
        await in_thread(partial(withhold, WithheldSource(name="push", why="Its terms."), by="test"))
        await in_thread(catalogue.load_now)
        await self.watched.settle()

    async def hand_on(self) -> None:
        source = await in_thread(WithheldSource.objects.get)
        await in_thread(partial(pass_on_again, [source], by="test"))
        await in_thread(catalogue.load_now)
        self.watched.watcher.close_held({})
        await self.watched.settle()

    async def reprice(self) -> None:
        await self.change("source", "replay")
        await self.watched.runner.series.settle()

    async def staff_as_prices_change(self) -> None:
        (facts,) = catalogue.all()
        state = self.watched.engine.instrument(facts, self.now_ms)
        ending = SeriesEnding(facts.symbol, state.last, state.seq, state.source, "replay")
        end = await self.watched.watcher.series_ends(ending)
        await self.staff_unheard()
        await in_thread(end)

    async def priced_by(self, source: str) -> None:
        await self.change("source", source)
        self.watched.engine.default_feed = source

    async def bridge(self, after_minutes: int) -> None:
        """By a minute of the venue's history, in which the price went nowhere."""
        opened_ms = (self.now_ms // MINUTE_MS + after_minutes) * MINUTE_MS
        bar = PriceBar(opened_ms, 1.0845, 1.0845, 1.0845, 1.0845, 1.0, 1.0846, 1.0846)
        self.watched.watcher.hear([HistoryMinute("EURUSD", bar, "bid")])
        await self.wait(after_minutes * MINUTE_MS)

    async def stall(self) -> None:
        await self.watched.stall()

    async def break_watcher(self) -> None:
        nobodys = TickAccepted([], 1.0, 1.0, 0, 1.0, 0)  # type: ignore[arg-type]
        self.watched.watcher.hear([nobodys])


STORIES: dict[str, tuple[list[Step], list[str], tuple[str, str]]] = {
    "a tick that comes too early fills nothing": ([(999, 1.0850)], ARMED, ("", "")),
    "stopped": ([(999, 1.0850), FILL, (1, 1.0805)], [*FILLED, "close"], ("stop_loss", "1.0805")),
    "target": ([FILL, (1, 1.0843), (1, 1.0910)], [*FILLED, "close"], ("take_profit", "1.09")),
    "stopped by its fill": ([(1_000, 1.0800)], [*FILLED, "close"], ("stop_loss", "1.08")),
    "filled beyond its target": (
        [(1_000, 1.0900)],
        [*FILLED, "cancel", "close"],
        ("cancelled", "1.09"),
    ),
    "filled beyond its target, and cancelled before anybody heard": (
        [(999, 1.0842), ("staff_unheard",), (1, 1.0900)],
        [*ARMED, "cancel", "fill", "arm cancel:1", "close"],
        ("cancelled", "1.09"),
    ),
    "no tick": ([("wait", 60_001)], [*ARMED, "cancel", "close"], ("cancelled", "1.0842")),
    "a tick too late": ([(60_001, 1.0844)], [*ARMED, "cancel", "close"], ("cancelled", "1.0842")),
    "a tick just in time": ([(60_000, 1.0844), ("wait", 1_000)], FILLED, ("", "")),
    "the market closes": (
        [("wait", 31 * 60_000)],
        [*ARMED, "cancel", "arm cancel:1", "close"],
        ("cancelled", "1.0842"),
    ),
    "cancelled before its fill": (
        [(10, 1.0842), ("staff",), FILL],
        [*ARMED, "cancel", "arm cancel:1", "close"],
        ("cancelled", "1.0842"),
    ),
    "deactivated before its fill": (
        [("change", "active", False)],
        [*ARMED, "cancel", "arm cancel:1", "close"],
        ("cancelled", "1.0842"),
    ),
    "deactivated after its fill": (
        [FILL, (1, 1.0847), ("change", "active", False)],
        [*FILLED, "cancel", "arm cancel:1", "close"],
        ("cancelled", "1.0847"),
    ),
    "deactivated while its quote was old": (
        [
            *(FILL, ("wait", 61_000), ("change", "active", False), ("wait", 1_000)),
            *(("change", "active", True), (1_000, 1.0849)),
        ],
        [*FILLED, "cancel", "arm cancel:1", "close"],
        ("cancelled", "1.0849"),
    ),
    "withheld before its fill": (
        [(5, 1.0841), ("withhold",), FILL],
        [*ARMED, "cancel", "arm cancel:1", "close"],
        ("cancelled", "1.0842"),
    ),
    "stopped while it is withheld, and told afterwards": (
        [FILL, ("wait", 0), ("withhold",), (5, 1.0805), ("wait", 1), (5, 1.0850), ("hand_on",)],
        [*FILLED, "close"],
        ("stop_loss", "1.0805"),
    ),
    "filled and withheld before that is told": (
        [("stall",), FILL, ("withhold",), (5, 1.0805), ("wait", 1), ("hand_on",)],
        [*ARMED, "cancel", "arm cancel:1", "close"],
        ("cancelled", "1.0842"),
    ),
    "asked to close": (
        [FILL, (10, 1.0846), ("ask",), (999, 1.0848), (1, 1.0849)],
        [*FILLED, "close_request", "arm close_request:1", "close"],
        ("manual", "1.0849"),
    ),
    "asked to close twice, and the stop comes first": (
        [FILL, (10, 1.0846), ("ask",), ("ask",), (500, 1.0808), (500, 1.0849)],
        [*FILLED, "close_request", "arm close_request:1", "close"],
        ("stop_loss", "1.0808"),
    ),
    "asked to close before its fill": (
        [("ask",), FILL, (10, 1.0847)],
        [*ARMED, "close_request", "arm close_request:1", "fill", "close"],
        ("manual", "1.0847"),
    ),
    "asked to close on a closed market": (
        [FILL, ("wait", 40 * 60_000), ("ask",), ("wait", 60 * 60_000), (0, 1.0850)],
        [*FILLED, "close_request", "arm close_request:1", "close"],
        ("manual", "1.085"),
    ),
    "cancelled after its fill": (
        [FILL, ("staff",), (999, 1.0848), (1, 1.0847)],
        [*FILLED, "cancel", "arm cancel:1", "close"],
        ("cancelled", "1.0847"),
    ),
    "the prices become simulated": (
        [FILL, (5, 1.0846), ("reprice",)],
        [*FILLED, "cancel", "arm cancel:1", "close"],
        ("cancelled", "1.0846"),
    ),
    "the prices become simulated before its fill": (
        [(5, 1.0846), ("reprice",)],
        [*ARMED, "cancel", "arm cancel:1", "close"],
        ("cancelled", "1.0842"),
    ),
    "stopped and withheld before its fill was told, and the prices become simulated": (
        [("stall",), FILL, (5, 1.0805), ("withhold",), ("wait", 0), ("reprice",)],
        [*ARMED, "cancel", "arm cancel:1", "close"],
        ("cancelled", "1.0842"),
    ),
    "the prices become simulated while staff's cancellation waits": (
        [FILL, (5, 1.0846), ("staff",), ("reprice",)],
        [*FILLED, "cancel", "arm cancel:1", "arm kind_changed:1", "close"],
        ("cancelled", "1.0846"),
    ),
    "the prices become simulated before the engine heard that staff cancel": (
        [FILL, (5, 1.0846), ("staff_as_prices_change",)],
        [*FILLED, "cancel", "arm kind_changed:1", "close"],
        ("cancelled", "1.0846"),
    ),
    "withheld prices become simulated while staff's cancellation waits": (
        [FILL, ("staff",), (5, 1.0846), ("withhold",), ("reprice",)],
        [*FILLED, "cancel", "arm cancel:1", "arm withheld:1", "close"],
        ("cancelled", "1.0844"),
    ),
    "stopped while it is withheld, and never told because the prices become simulated": (
        [FILL, ("wait", 1), ("withhold",), (5, 1.0805), ("wait", 1), ("reprice",)],
        [*FILLED, "cancel", "arm cancel:1", "close"],
        ("cancelled", "1.0844"),
    ),
    "prices are not settled when it is due": (
        [
            ("change", "outlier_percent", Decimal("0.5")),
            *((900, 1.0600, "outlier"), (100, 1.0850), (1, 1.0850), (1, 1.0845), (1, 1.0846)),
        ],
        FILLED,
        ("", ""),
    ),
    "what is not settled does not count": (
        [
            ("change", "outlier_percent", Decimal("0.5")),
            *((50_000, 1.0600, "outlier"), ("wait", 9_000), ("wait", 10_000), (900, 1.0845)),
        ],
        FILLED,
        ("", ""),
    ),
    "the watcher broke": (
        [(5, 1.0841), ("break_watcher",), FILL, (5, 1.0805), ("wait", 1)],
        [*FILLED, "close"],
        ("stop_loss", "1.0805"),
    ),
    "the watcher broke after its fill": (
        [FILL, (5, 1.0870), ("wait", 1), ("break_watcher",), (5, 1.0805), ("wait", 1)],
        [*FILLED, "close"],
        ("stop_loss", "1.0805"),
    ),
}


@pytest.mark.served
@pytest.mark.parametrize("name", STORIES)
def test_what_happens_to_a_signal_and_what_the_ledger_says(name: str, clock: time_machine.Traveller) -> None:
    steps, entries, end = STORIES[name]

    async def act(watched: WatchedEngine) -> None:
        story = Story(watched, clock)
        await story.begin()
        await story.go(*steps)

    run(act)
    signal = Signal.objects.get()
    assert told() == entries
    price = None if signal.close_price is None else f"{signal.close_price.normalize():f}"
    assert (signal.close_reason, price or "") == end
    assert verify().fault == ""


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize(
    ("steps", "feed"),
    [
        ([("priced_by", "push:desk"), (5, 1.0844), ("priced_by", "kraken"), (5, 1.0844)], "kraken+push"),
        ([("priced_by", "binance"), (5, 1.0844), ("priced_by", "kraken"), (5, 1.0844)], "kraken"),
        ([("bridge", 1)], "kraken+minutes"),
        ([("bridge", 0)], "kraken"),
    ],
    ids=["pushed meanwhile", "at another venue", "a minute", "the minute of its fill"],
)
def test_evidence_names_whose_prices_judged_it_since_its_fill(
    clock: time_machine.Traveller, steps: list[Step], feed: str, *, is_killed: bool
) -> None:
    async def before(watched: WatchedEngine) -> None:
        story = Story(watched, clock)
        await story.begin()
        await story.go(("priced_by", "kraken"), FILL, ("wait", 1), (5, 1.0844))
        assert await watched.runner.writer.flush()
        await story.go(*steps)

    async def killed() -> None:
        watched = await WatchedEngine(epoch="one").enter()
        await before(watched)
        assert await watched.runner.writer.flush()
        await watched.kill()

    async def act(watched: WatchedEngine) -> None:
        await before(watched) if not is_killed else None
        watched.engine.default_feed = "kraken"
        await Story(watched, clock).go((5, 1.0805))

    if is_killed:
        asyncio.run(killed())
    run(act, epoch="one")
    assert Evidence.objects.get(kind="exit").feed == feed


@pytest.mark.parametrize(
    ("steps", "counted_r"),
    [
        ([FILL, (5, 1.0805), ("wait", 0), ("withhold",), ("reprice",)], "-1.1429"),
        ([FILL, ("wait", 0), ("withhold",), (5, 1.0815), ("reprice",)], "-1"),
        ([FILL, (5, 1.0845), ("reprice",)], "0"),
        ([(1_000, 1.0905)], "-0.0104"),
    ],
    ids=["stopped before", "losing, and not told", "told", "beyond its target"],
)
def test_losers_are_not_ended_at_their_fills_by_staff_who_withhold_them(
    clock: time_machine.Traveller, steps: list[Step], counted_r: str
) -> None:
    async def act(watched: WatchedEngine) -> None:
        story = Story(watched, clock)
        await story.begin()
        await story.go(*steps)

    run(act)
    publisher = find(Signal.objects.get().user.username)
    assert publisher is not None
    assert Scorecards().read(publisher).figures.all.total_r == Decimal(counted_r)


@pytest.mark.parametrize("is_quote_written", [True, False])
def test_no_signal_ends_at_a_price_out_of_a_file(
    clock: time_machine.Traveller, *, is_quote_written: bool
) -> None:
    """Which staff import before they change the kind of its prices."""

    async def filled_and_killed() -> None:
        watched = await WatchedEngine(epoch="one").enter()
        story = Story(watched, clock)
        await story.begin()
        await story.go(FILL, (5, 1.0843))
        if is_quote_written:
            assert await watched.runner.writer.flush()
        await watched.kill()

    async def act(watched: WatchedEngine) -> None:
        await Story(watched, clock).reprice()

    asyncio.run(filled_and_killed())
    clock.shift(1)
    keep_quote(catalogue.get("EURUSD"), Tick("EURUSD", 1.0899, 1.0900, market.now_ms()))
    # Where nothing was written, the numbering begins anew, and the last tick is lost.
    run(act, epoch="one" if is_quote_written else "two")
    assert Signal.objects.get().close_price == Decimal("1.0843" if is_quote_written else "1.0844")
    if not is_quote_written:
        TAPE.pop()


def test_nobody_buys_at_what_a_slow_line_has_not_told_yet(clock: time_machine.Traveller) -> None:
    """Its least lag looks like a clock that is ahead. Who has a quicker line knows what was made before."""

    async def act(watched: WatchedEngine) -> None:
        watched.run_ahead(ANSWERED_MS - 100)
        story = Story(watched, clock)
        await story.begin()
        await story.go((FILL_AFTER_MS, 1.0843), (ANSWERED_MS - 101 - FILL_AFTER_MS, 1.0844), (1, 1.0845))

    run(act)
    assert Signal.objects.get().fill_price == Decimal("1.0846")


@pytest.mark.parametrize("ahead_ms", [HOUR_MS, None])
def test_first_arm_waits_for_the_venue_to_say_what_time_it_is_but_not_for_ever(
    clock: time_machine.Traveller, ahead_ms: int | None
) -> None:
    async def act(watched: WatchedEngine) -> None:
        clock.shift(3 * HOUR_MS / 1000)
        watched.engine.feed_state("push").source_ms, watched.ahead_ms = 0, ahead_ms or 0
        story = Story(watched, clock)
        await story.begin()
        await story.wait(CLOCK_AWAITED_MS - 1)
        assert await in_thread(told) == ["publish"]
        if ahead_ms is not None:
            watched.run_ahead(ahead_ms)
        await story.wait(int(ahead_ms is None))
        assert await in_thread(told) == ARMED

    run(act)
    arm = LedgerEntry.objects.get(kind="arm")
    assert json.loads(arm.payload)["ahead_ms"] == (ahead_ms or 0)


@pytest.mark.parametrize("ahead_ms", [HOUR_MS, -HOUR_MS])
@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([(1, 1.0805)], "stop_loss"),
        ([("ask",), (999, 1.0845), (1, 1.0846)], "manual"),
        ([(LIFETIME_MS - 1_001, 1.0845), (1, 1.0846)], "expired"),
    ],
)
def test_beside_a_clock_that_is_an_hour_off_a_signal_is_filled_and_closed_in_time(
    clock: time_machine.Traveller, ahead_ms: int, steps: list[Step], reason: str
) -> None:
    async def act(watched: WatchedEngine) -> None:
        clock.shift(3 * HOUR_MS / 1000)
        watched.run_ahead(ahead_ms)
        story = Story(watched, clock)
        await story.begin()
        await story.wait(500)
        shown = quote_of(catalogue.get("EURUSD"))
        assert (shown["state"], shown["age_ms"]) == ("open", 500)
        await story.go((499, 1.0843), (1, 1.0844), *steps)
        assert await watched.runner.writer.flush()
        marked_ms = await in_thread(read_mark_ms)
        assert 0 <= watched.now_ms() - ahead_ms - marked_ms < MINUTE_MS

    run(act)
    signal = Signal.objects.get()
    assert (signal.fill_price, signal.close_reason) == (Decimal("1.0845"), reason)
    assert signal.close_price == Decimal("1.0805" if reason == "stop_loss" else "1.0846")
    assert verify().fault == ""


@pytest.mark.parametrize("seems_in_time", [False, True])
def test_a_signal_that_the_engine_hears_of_too_late_is_never_armed(
    clock: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch, *, seems_in_time: bool
) -> None:
    def earlier() -> str:
        # So long ago that the database still takes it.
        return iso(ms_of(database_clock()) - (ARM_WITHIN_MS + WRITTEN_WITHIN_MS) // 2)

    async def act(watched: WatchedEngine) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(ledger, "database_clock", earlier)
            await Story(watched, clock).begin(is_settled=False)
        written = json.loads(await in_thread(lambda: LedgerEntry.objects.get().payload))["written"]
        # The database has the last word, and then it is looked at once more.
        looks = iter([written] if seems_in_time else [])
        monkeypatch.setattr(decisions, "database_clock", lambda: next(looks, None) or database_clock())
        await watched.settle()

    run(act)
    assert told() == ["publish", "cancel", "close"]
    assert Signal.objects.get().cancel_reason == CAUSES[NOT_ARMED]
