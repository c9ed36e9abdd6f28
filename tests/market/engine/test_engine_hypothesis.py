"""An engine that is killed, cut off from its database and replaced at any moment, against a plain reckoning
of the ticks that it was given."""

from __future__ import annotations

import pytest
from django.db import connection
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.models import TradingCalendar
from market.engine.engine import Engine
from market.models import Candle, EngineState, FormingMinute, LastQuote
from market.prices.candles import TIMEFRAMES, PriceBar
from market.prices.quotes import Prices
from market.prices.records import AnyRecord, Tick, TickAccepted
from market.store.series import load
from tests.factories import make_calendar, make_instrument
from tests.market.running import flush
from tests.market.ticking import HOUR_MS, Rows, expected, ms

pytestmark = pytest.mark.django_db(transaction=True)
PRICES = ("open", "high", "low", "close", "volume", "ask_high", "ask_low")
STARTS = ("2026-11-18T12:00", "2026-11-18T21:50", "2026-11-20T21:55")
REFUSALS = {None, "too_late", "market_closed"}
gaps = st.sampled_from((0, 1, 700, 20_000, MINUTE_MS, 4 * MINUTE_MS)) | st.integers(0, 5 * HOUR_MS)
STEPS = settings(max_examples=40, stateful_step_count=25, suppress_health_check=list(HealthCheck))


class Life(RuleBasedStateMachine):
    """Of one instrument that pauses for an hour each day."""

    @initialize(start=st.sampled_from(STARTS))
    def begin(self, start: str) -> None:
        for model in (Candle, FormingMinute, LastQuote, EngineState):
            model.objects.all().delete()
        self.now_ms = ms(start)
        self.ticks: list[Tick] = []
        """Those that count."""
        self.written = 0
        """How many of them the database knows."""
        self.journal: list[AnyRecord] = []
        """What other processes have heard since."""
        self.engine = self.restarted()

    @rule(gap_ms=gaps, points=st.integers(-30, 30))
    def send(self, gap_ms: int, points: int) -> None:
        self.now_ms += gap_ms
        self.take(self.now_ms, points)

    @rule(gap_ms=st.sampled_from((0, 700, MINUTE_MS, 3 * MINUTE_MS)), points=st.integers(-30, 30))
    def send_what_was_under_way(self, gap_ms: int, points: int) -> None:
        last_ms = self.ticks[-1].time_ms if self.ticks else self.now_ms
        self.take(min(last_ms + gap_ms, self.now_ms), points)

    @rule()
    def send_again(self) -> None:
        assert set(self.push(self.ticks[-5:])) <= {"duplicate"}

    @rule(gap_ms=gaps)
    def let_time_pass(self, gap_ms: int) -> None:
        self.now_ms += gap_ms
        self.engine.keep_time(self.now_ms)
        self.hear()

    @rule()
    def write(self) -> None:
        flush(self.engine)
        self.written, self.journal = len(self.ticks), []
        wanted = {key: candle for key, candle in expected(self.ticks).items() if key[0] == "1m"}
        assert minutes_stored() == wanted

    @rule()
    def fail_to_write(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE market_lastquote RENAME TO market_lastquote_away")
            try:
                flush(self.engine)
            finally:
                cursor.execute("ALTER TABLE market_lastquote_away RENAME TO market_lastquote")

    @rule()
    def be_killed(self) -> None:
        """The source sends its last ticks again, as it is told to."""
        sent, self.ticks = self.ticks, self.ticks[: self.written]
        self.engine, self.journal = self.restarted(), []
        again = sent[max(0, self.written - 5) :]
        reasons = self.push(again)
        assert reasons[: len(again) - len(sent) + self.written] == ["duplicate"] * min(5, self.written)
        assert set(reasons) <= {None, "duplicate"}
        self.ticks = sent

    @rule()
    def be_replaced(self) -> None:
        """The successor has read the journal, and writes it."""
        self.engine = self.restarted()
        for record in self.journal:
            self.engine.repeat(record, self.now_ms)

    @invariant()
    def each_tick_has_its_number(self) -> None:
        heard = [record.seq for record in self.journal if isinstance(record, TickAccepted)]
        assert heard == list(range(self.written + 1, len(self.ticks) + 1))
        assert self.engine.instruments["XAUUSD"].seq == len(self.ticks)

    def teardown(self) -> None:
        if not hasattr(self, "engine"):
            return
        self.engine.keep_time(self.now_ms + 7 * TIMEFRAMES["1d"])
        flush(self.engine)
        assert rows_stored() == expected(self.ticks)

    def take(self, time_ms: int, points: int) -> None:
        bid = round(1_800 + points / 100, 2)
        tick = Tick("XAUUSD", bid, round(bid + 0.3, 2), time_ms, 1.0, source_seq=len(self.ticks) + 1)
        (reason,) = self.push([tick])
        assert reason in REFUSALS
        if reason is None:
            self.ticks.append(tick)

    def push(self, ticks: list[Tick]) -> list[str | None]:
        """By a source that is lost at once, so that no minute counts as quiet."""
        reasons = self.engine.take("push:desk", ticks, self.now_ms)
        self.engine.feed_state("push:desk").lost()
        self.hear()
        return reasons

    def hear(self) -> None:
        self.journal += self.engine.records
        self.engine.records = []

    def restarted(self) -> Engine:
        engine = Engine(Prices("bid"))
        engine.resume(load(engine.prices).checkpoints, self.now_ms)
        engine.instrument(catalogue.get("XAUUSD"), self.now_ms)
        self.journal += engine.records
        engine.records = []
        return engine


def rows_stored() -> Rows:
    rows = Candle.objects.values_list("timeframe", "opened_at", *PRICES)
    return {
        (timeframe, at): PriceBar(at, *map(float, prices))  # type: ignore[arg-type]
        for timeframe, opened_at, *prices in rows
        if (at := round(opened_at.timestamp() * 1000))
    }


def minutes_stored() -> Rows:
    """With the one that forms."""
    minutes = {key: candle for key, candle in rows_stored().items() if key[0] == "1m"}
    for forming in FormingMinute.objects.all():
        at = round(forming.opened_at.timestamp() * 1000)
        if at > max((opened_ms for _, opened_ms in minutes), default=0):
            minutes["1m", at] = PriceBar(at, *(float(getattr(forming, name)) for name in PRICES))  # type: ignore[arg-type]
    return minutes


@pytest.fixture(autouse=True)
def calendar(transactional_db: None) -> TradingCalendar:
    calendar = make_calendar("metals", "Sun-Thu 23:00-22:00")
    make_instrument("XAUUSD", calendar=calendar, digits=2, source="push")
    return calendar


@pytest.mark.served
def test_every_tick_counts_once_whatever_happens_to_the_engine() -> None:
    run_state_machine_as_test(Life, settings=STEPS)
