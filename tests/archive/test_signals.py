"""Signals that were closed on an archived day are judged again by its ticks, and end in the same way."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import time_machine

from archive.proving import DayVerdict, verify_day
from archive.proving.files import ArchivedMinute, ArchivedTick
from archive.proving.verify import ArchivedDays, NotJudged, judge_again
from core.threads import in_thread
from core.times import MINUTE_MS, epoch_ms, moment, read_iso
from instruments.models import Instrument
from market import runtime as market
from market.models import Candle
from signals_feed.closing import Closing, close_signal
from signals_feed.exits import STOP, TARGET, Exit
from signals_feed.judging.watcher import SignalWatcher
from signals_feed.ledger.ledger import database_clock
from signals_feed.models import Evidence, Signal
from signals_feed.rules import Quoted, StoredMinute
from tests.archive.keeping import DAY, DAY_MS, KeptEngine, fold, store_of
from tests.factories import make_candle
from tests.signals_feed import filled_signals
from tests.signals_feed.published_signals import SELL, close_at, make_published

pytestmark = [pytest.mark.usefixtures("eurusd"), pytest.mark.services]
AT_MS = DAY_MS + 60 * MINUTE_MS
SECOND_MS = 1_000
BIDS = (1.0841, 1.0850, 1.0870, 1.0899, 1.0901, 1.0850, 1.0811, 1.0809, 1.0841)


class JudgedDay:
    """An engine with its watcher of signals and what is kept of its ticks."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.watcher = folder, SignalWatcher()
        self.kept = KeptEngine(folder, listeners=[self.watcher], prices=market.prices)

    async def run(self, bids: tuple[float, ...] = BIDS) -> None:
        for number, bid in enumerate(bids, 1):
            self.kept.tick(bid, AT_MS + number * SECOND_MS)
        await self.watcher.look()
        assert self.watcher.closer is not None
        await self.watcher.closer.work_off()
        await self.kept.end_day()

    async def verdict(self) -> DayVerdict:
        await in_thread(fold, self.folder)
        return await in_thread(verify_day, store_of(self.folder), DAY)


def published(**terms: Any) -> Signal:
    return make_published(published_at=moment(AT_MS), **terms)


async def test_a_target_a_stop_and_an_expiry_are_judged_again(folder: Path) -> None:
    ends_at = moment(AT_MS + 2 * SECOND_MS)
    every: tuple[dict[str, Any], ...] = ({}, SELL, {"expires_at": ends_at})
    signals = [await in_thread(published, **terms) for terms in every]
    day = JudgedDay(folder)
    async with day.kept:
        await day.run()
        verdict = await day.verdict()
    assert (verdict.faults, verdict.notes, verdict.counts["signals"]) == ([], [], 3)
    for signal in signals:
        await signal.arefresh_from_db()
    assert [signal.close_reason for signal in signals] == ["take_profit", "stop_loss", "expired"]


def closed_by(signal: Signal, price: str, reason: str, rule: str, bid: float, seq: int, epoch: str) -> None:
    at_ms = AT_MS + seq * SECOND_MS
    quote = Quoted(Decimal(str(bid)), Decimal(str(round(bid + 0.0001, 5))), at_ms, epoch, seq)
    closing = Closing(signal.pk, Decimal(price), reason, at_ms, rule, Evidence.Source.TICK, quote.shown)
    assert close_signal(closing)


@pytest.mark.parametrize(
    ("terms", "fault"),
    [
        (("1.0900", "take_profit", TARGET, 1.0901, 5), ""),
        # Its target had been met before.
        (("1.0809", "stop_loss", STOP, 1.0809, 8), "ends by take_profit at 1.09, at tick 5, and"),
        (("1.0900", "take_profit", TARGET, 1.0899, 4), "and its close says take_profit at 1.09, at tick 4"),
        (("1.0810", "stop_loss", STOP, 1.0901, 5), "judged again it ends by take_profit"),
        (("1.0900", "take_profit", TARGET, 1.0902, 5), "bid is 1.0902, and the rules give 1.0901"),
        (("1.0900", "take_profit", TARGET, 1.0901, 99), "makes no close"),
    ],
)
async def test_a_result_that_the_ticks_do_not_give_is_found(
    folder: Path, terms: tuple[str, str, str, float, int], fault: str
) -> None:
    day = JudgedDay(folder)
    async with day.kept:
        # Ticks that meet no level, where the one that closed it is to be looked for.
        await day.run(BIDS[:3] if terms[-1] > len(BIDS) else BIDS)
        signal = await in_thread(published)
        await in_thread(closed_by, signal, *terms, day.kept.runner.epoch())
        verdict = await day.verdict()
    if fault:
        (found,) = verdict.faults
        assert f"Signal {signal.pk}" in found
        assert fault in found
    else:
        assert (verdict.faults, verdict.counts["signals"]) == ([], 1)


async def test_a_signal_of_days_that_are_not_archived_is_not_judged(folder: Path) -> None:
    day = JudgedDay(folder)
    async with day.kept:
        await day.run()
        before = moment(AT_MS) - timedelta(days=2)
        signal = await in_thread(make_published, published_at=before)
        await in_thread(close_at, signal, Decimal("1.0841"), Decimal("1.0842"), "manual", moment(AT_MS))
        verdict = await day.verdict()
    assert verdict.faults == []
    assert verdict.notes == [f"Signal {signal.pk} is not judged again: 2026-11-16 is not archived."]


LATER_MS = AT_MS + 60 * MINUTE_MS
PRICES = {"open": "1.0850", "high": "1.0950", "low": "1.0840", "close": "1.0870"}
BY_DATABASE = "judged by its minute in the database, which was stored after the archive was made"
REACHED = {name: Decimal(price) for name, price in PRICES.items()}


def store(**changes: Any) -> None:
    """A minute that reaches the target."""
    fields: dict[str, Any] = {"source": "kraken", **REACHED} | changes
    found = Candle.objects.filter(timeframe="1m", opened_at=moment(LATER_MS))
    if not found.update(**fields):
        make_candle(Instrument.objects.get(), opened_at=moment(LATER_MS), **fields)


def closed_by_minute(signal: Signal) -> None:
    bids = REACHED["open"], REACHED["low"], REACHED["high"]
    minute = StoredMinute(LATER_MS, *bids, None, None)
    reached = Exit(signal.take_profit, "take_profit", TARGET)
    assert close_signal(Closing.by_candle(signal.pk, reached, minute, None))


@pytest.mark.served
@pytest.mark.parametrize("archived", [None, {}, {"high": Decimal("1.0880")}])
@pytest.mark.parametrize("since", [{}, {"source": "import"}, {"high": Decimal("1.0880")}, None, "dropped"])
async def test_a_minute_that_closed_a_signal_is_judged_as_it_was_archived_or_stored_since(
    folder: Path, archived: dict[str, Any] | None, since: dict[str, Any] | str | None
) -> None:
    day = JudgedDay(folder)
    async with day.kept:
        await day.run(BIDS[:3])
        signal = await in_thread(published)
        if archived is not None:
            await in_thread(store, **archived)
        await in_thread(fold, folder)
        await in_thread(closed_by_minute, signal)
        if isinstance(since, dict):
            await in_thread(store, **since)
        elif since is None:
            await Candle.objects.filter(opened_at=moment(LATER_MS)).adelete()
        else:
            await Candle.objects.all().adelete()
        verdict = await in_thread(verify_day, store_of(folder), DAY)
    faults = [fault for fault in verdict.faults if "Signal" in fault]
    notes = [note for note in verdict.notes if "Signal" in note]
    if archived == {} or (since == {"source": "import"}) or (since == {} and archived is None):
        assert (faults, verdict.counts["signals"]) == ([], 1)
        by_database = archived != {}
        assert notes == ([f"Signal {signal.pk}: {BY_DATABASE}."] if by_database else [])
    elif archived is None and since == "dropped":
        assert (faults, verdict.counts["signals"]) == ([], 0)
        assert "the database has it no longer" in notes[0]
    else:
        nowhere = archived is None and since is None
        says = "neither in the archive nor in the database" if nowhere else "makes no close"
        assert says in faults[0]


@pytest.mark.parametrize(
    ("ask", "fault"),
    [("1.0844", ""), ("1.0849", "fill_price is 1.0844, and the rules give 1.0849"), ("", "")],
)
def test_a_fill_is_judged_by_its_ticks_where_a_minute_closed_the_signal(
    clock: time_machine.Traveller, ask: str, fault: str
) -> None:
    clock.move_to(read_iso(database_clock()))
    signal = filled_signals.make_filled()
    fill, target = signal.evidence.get(kind="fill"), signal.take_profit
    opened_ms = epoch_ms(fill.at) // MINUTE_MS * MINUTE_MS + MINUTE_MS
    shown: dict[str, Any] = {"kind": "exit", "source": "candle", "rule": TARGET, "at": moment(opened_ms)}
    shown |= dict.fromkeys(("bid_open", "bid_low", "worst"), filled_signals.BID)
    shown |= {"bid_high": target, "best": target}
    exit_ = Evidence.objects.create(signal=signal, **shown)
    filled_signals.end_at_target(signal, exit_, moment(opened_ms + MINUTE_MS - 1))
    bid, high, at_ms = float(filled_signals.BID), float(target), epoch_ms(fill.at)
    row = ArchivedMinute(bid, high, bid, high, 1.0, None, None, "ticks", "kraken")
    tick = ArchivedTick(
        fill.seq,
        "e",
        at_ms,
        bid,
        float(ask or 0),
        1.0,
        "kraken",
        at_ms,
        "kraken",
        settled=True,
        unsettled_ms=0,
    )

    def ticks(*_: object) -> list[ArchivedTick]:
        if not ask:
            raise NotJudged("a day is missing")
        return [tick]

    judged = judge_again(signal, ArchivedDays(ticks, lambda *_: {opened_ms: row}, lambda *_: {}))
    assert (bool(judged.fault), fault in judged.fault, bool(judged.note)) == (bool(fault), True, not ask)
