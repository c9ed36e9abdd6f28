"""Which minutes without a tick are flat: those in which whoever sent the last tick was alive, and had said
nothing else since."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest

from instruments.catalogue import catalogue
from instruments.models import Instrument
from market.engine.engine import NO_ROOM, Engine
from market.engine.feeds.supervisor import EngineReceiver
from market.prices.quotes import Prices
from market.prices.records import Tick
from tests.factories import make_instrument
from tests.market.running import flush, restarted
from tests.market.ticking import NOON_MS
from tests.patience import wait_until

pytestmark = pytest.mark.django_db
GOOD = Tick("EURUSD", 1.08, 1.0802, NOON_MS + 30_000)


@pytest.fixture(autouse=True)
def instrument() -> Instrument:
    make_instrument("BTCUSD", source="push")
    return make_instrument("EURUSD", source="push", outlier_percent=1, stale_after_s=600)


def changed(**changes: Any) -> Tick:
    return msgspec.structs.replace(GOOD, **changes)


class Day:
    """An engine, and who sends to it, from five minutes before noon on."""

    def __init__(self, engine: Engine | None = None, at_s: int = -300) -> None:
        self.engine = engine or Engine(Prices("bid"))
        self.at_s = at_s
        self.engine.keep_time(self.at_ms)

    @property
    def at_ms(self) -> int:
        return NOON_MS + self.at_s * 1000

    def go_on(self, until_s: int, *alive: str) -> None:
        """Each of them gives a sign of life every ten seconds."""
        while self.at_s < until_s:
            self.at_s = min(self.at_s + 10, until_s)
            for origin in alive:
                self.engine.take(origin, [], self.at_ms)
            self.engine.keep_time(self.at_ms)

    def send(self, origin: str, tick: Tick) -> str | None:
        return self.engine.take(origin, [tick], self.at_ms)[0]

    @property
    def rows(self) -> list[dict[str, Any]]:
        bars = self.engine.prices.history(catalogue.get("EURUSD")).bars("1m", 500, closed_only=True)
        return msgspec.json.decode(b"[%s]" % bars.ohlcv, type=list[dict[str, Any]])

    @property
    def closed(self) -> list[int]:
        """The closed minutes, counted from noon."""
        times = [datetime.fromisoformat(row["time"]).timestamp() for row in self.rows]
        return [round(time - NOON_MS / 1000) // 60 for time in times]


def quoted_day(origin: str = "push:desk", *others: str) -> Day:
    day = Day()
    day.go_on(30, origin, *others)
    assert day.send(origin, GOOD) is None
    return day


@pytest.mark.parametrize("others", [[], ["push:coins"]])
def test_nothing_is_flat_while_the_source_is_silent(others: list[str]) -> None:
    day = quoted_day("push:desk", *others)
    for until_s in range(90, 610, 60):
        day.go_on(until_s, *others)
        for other in others:
            assert day.send(other, Tick("BTCUSD", 90_000.0, 90_001.0, day.at_ms)) is None

    # For a minute after its last word it may still be there.
    assert day.closed == [0]


def test_nothing_is_flat_once_its_market_is_stale(instrument: Instrument) -> None:
    Instrument.objects.filter(pk=instrument.pk).update(stale_after_s=90)
    catalogue.load_now()
    day = quoted_day()
    day.go_on(400, "push:desk")

    # It is stale from the third minute's beginning on.
    assert day.closed == [0, 1, 2]


def test_nothing_is_flat_for_the_time_in_which_the_source_was_lost() -> None:
    day = quoted_day()
    day.go_on(60, "push:desk")
    day.engine.feed_state("push:desk").lost()
    day.go_on(120)
    day.go_on(310, "push:desk")

    assert day.closed == [0, 3, 4]


def test_minute_of_which_ticks_were_refused_for_want_of_room_is_not_flat() -> None:
    day = quoted_day()
    day.go_on(70, "push:desk")
    day.engine.has_room = lambda: False
    assert day.send("push:desk", changed(time_ms=day.at_ms)) == NO_ROOM
    day.engine.has_room = lambda: True
    day.go_on(310, "push:desk")

    assert day.closed == [0, 2, 3, 4]


def test_tick_right_after_a_quiet_minute_does_not_hide_it() -> None:
    day = quoted_day()
    day.go_on(50, "push:desk")
    day.at_s = 100
    day.engine.take("push:desk", [], day.at_ms)
    day.at_s = 120
    assert day.send("push:desk", changed(time_ms=day.at_ms)) is None
    day.engine.keep_time(day.at_ms)

    assert day.closed == [0, 1]


def test_source_that_takes_over_is_the_one_that_has_to_be_alive() -> None:
    day = quoted_day("push:desk", "push:other")
    day.go_on(100, "push:other", "push:desk")
    assert day.send("push:other", changed(bid=1.07, time_ms=day.at_ms)) is None
    day.go_on(310, "push:other")

    assert day.closed == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"time_ms": 60_000}, "future"),
        ({"bid": 1.09}, "crossed"),
        ({"bid": -1.0}, "not_positive"),
        ({"bid": 10.8, "ask": 10.9}, "outlier"),
    ],
)
def test_nothing_is_flat_once_the_source_says_what_is_not_believed(
    wrong: dict[str, Any], reason: str
) -> None:
    day = quoted_day()
    day.go_on(130, "push:desk")
    off_ms = wrong.pop("time_ms", 0)
    for until_s in range(130, 600, 10):
        day.go_on(until_s, "push:desk")
        # An outlier that is repeated would be a new level.
        if reason != "outlier" or until_s == 130:
            assert day.send("push:desk", changed(time_ms=day.at_ms + off_ms, **wrong)) == reason

    assert day.closed == [0, 1]
    assert day.send("push:desk", changed(time_ms=day.at_ms)) is None
    day.go_on(800, "push:desk")
    assert day.closed == [0, 1, 9, 10, 11, 12]


def test_nothing_is_flat_once_a_tick_came_too_late_that_is_younger_than_the_last() -> None:
    day = quoted_day()
    day.go_on(125, "push:desk")
    assert day.send("push:desk", changed(bid=1.07, time_ms=NOON_MS + 119_000)) == "too_late"
    day.go_on(400, "push:desk")

    assert day.closed == [0, 1]


@pytest.mark.parametrize("every_s", [1, 10])
def test_source_with_a_clock_that_is_behind_makes_no_flat_minutes(every_s: int) -> None:
    day, behind_s = quoted_day(), 395
    day.go_on(130, "push:desk")
    for until_s in range(130, 1_200, every_s):
        day.go_on(until_s, "push:desk")
        day.send("push:desk", changed(time_ms=day.at_ms - behind_s * 1000))

    # First its ticks are older than the last one. Then they make their minutes, late.
    assert day.closed[:13] == list(range((1_200 - behind_s) // 60))
    assert all(row["volume"] > 0 for row in day.rows[2:])


OLDER = changed(time_ms=NOON_MS + 20_000, bid=1.07)


@pytest.mark.parametrize(
    ("at_s", "origin", "again", "reasons"),
    [
        (40, "push:desk", [], []),
        (40, "push:desk", [GOOD], ["duplicate"]),
        (40, "push:desk", [OLDER], ["older_than_last"]),
        (40, "push:desk", [changed(time_ms=NOON_MS - 5_000, bid=1.07)], ["too_late"]),
        (130, "push:desk", [OLDER, GOOD], ["too_late", "duplicate"]),
        (30, "push:coins", [changed(time_ms=NOON_MS + 90_000)], ["future"]),
    ],
)
def test_flat_minutes_go_on_after_what_is_sent_again_or_is_older_or_of_a_stranger(
    instrument: Instrument, at_s: int, origin: str, again: list[Tick], reasons: list[str]
) -> None:
    Instrument.objects.filter(pk=instrument.pk).update(source="push:desk")
    catalogue.load_now()
    day = quoted_day()
    day.go_on(at_s, "push:desk")
    assert [day.send(origin, tick) for tick in again] == reasons
    day.go_on(310, "push:desk")

    assert day.closed == [0, 1, 2, 3, 4]


def test_nothing_is_flat_that_the_venue_does_not_serve(instrument: Instrument) -> None:
    Instrument.objects.filter(pk=instrument.pk).update(source="kraken")
    catalogue.load_now()
    day = quoted_day("kraken")
    day.go_on(130, "kraken")
    receiver = EngineReceiver(day.engine, "kraken", ["EURUSD"], lambda: None)
    receiver.refuse("unknown_symbol", "EUR/USD is not served", ["EURUSD"])
    day.go_on(300, "kraken")

    assert day.closed == [0, 1]
    assert day.send("kraken", changed(time_ms=day.at_ms)) is None
    day.go_on(430, "kraken")
    assert day.closed == [0, 1, 5, 6]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("origin", ["push:desk", "push:coins"])
def test_after_a_restart_it_is_still_known_who_sent_the_last_tick(origin: str) -> None:
    before = quoted_day()
    # What a database did not take it is given again.
    wait_until(lambda: flush(before.engine))
    day = Day(restarted(), at_s=60)
    day.go_on(310, origin)

    assert day.closed[1:] == ([2, 3, 4] if origin == "push:desk" else [])


@pytest.mark.parametrize("origin", ["push:desk", "push:coins"])
def test_successor_knows_who_sent_the_last_tick_and_its_number(origin: str) -> None:
    day, successor, numbered = Day(), Engine(Prices("bid")), changed(source_seq=7)
    day.go_on(30, "push:desk")
    assert day.send("push:desk", numbered) is None
    for record in day.engine.records:
        successor.repeat(record, day.at_ms)
    later = Day(successor, at_s=30)
    assert later.send("push:desk", numbered) == "duplicate"
    later.go_on(310, origin)

    assert later.closed == ([0, 1, 2, 3, 4] if origin == "push:desk" else [0])
