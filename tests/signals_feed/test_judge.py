"""True records hold, and one altered fact is named: with every tick, and without as the evidence allows."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from signals_feed import contradictions as contradicting
from signals_feed import exits, record, venue_days
from signals_feed import judge as judging
from signals_feed.bundle.writing import windows
from signals_feed.contradictions import (
    LATE_MS,
    MOST_AHEAD_MS,
    MOST_WAIT_MS,
    NEAR_MS,
    SEVERAL,
    by_windows,
    contradictions,
)
from signals_feed.exits import Minute, Tick
from signals_feed.judge import judge
from signals_feed.record import AT_LAST, Payload, ms_of

from .honest_engine import START_MS, Entry, HonestEngine, Plan, half_away, iso

moves = st.integers(-4, 4) | st.sampled_from([-60, -25, 25, 60])
waits = st.integers(1, 3_000) | st.sampled_from([1, 999, 1_000, 25_000, 58_000, 61_000])
ticks = st.tuples(
    moves, st.integers(0, 4), st.sampled_from([0, 0, 300, 4_000]), st.sampled_from([1, 1, 1, 0])
)
nothing: st.SearchStrategy[tuple[int, ...]] = st.just(())
numbers = {
    "minute": st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12)),
    "cancel": st.tuples(st.integers(0, 4)),
    "source": st.tuples(st.integers(0, 2)),
    "request": nothing,
    "restart": nothing,
    "look": nothing,
}
a_tick = st.tuples(waits, st.just("tick"), ticks)
steps = st.lists(
    st.one_of(a_tick, a_tick, a_tick, *(st.tuples(waits, st.just(what), of) for what, of in numbers.items())),
    max_size=30,
)


@st.composite
def plans(draw: Any) -> Plan:
    heard = draw(st.sampled_from([10, 10, 4_000, 5_001])), draw(st.sampled_from(["look", "look", "wait"])), ()
    distances = draw(st.integers(0, 3)), draw(st.integers(6, 40)), draw(st.integers(6, 40))
    times = draw(st.sampled_from([5_000, 100_000, 10**9])), draw(st.sampled_from([0, 40, 3_000]))
    ahead_ms = draw(st.sampled_from([0, 0, 70, HOUR_MS, -HOUR_MS]))
    return Plan(draw(st.booleans()), *distances, *times, [heard, *draw(steps)], ahead_ms)


@pytest.fixture(autouse=True)
def _limits_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "ARM_WITHIN_MS", 5_000)
    monkeypatch.setattr(contradicting, "WRITTEN_WITHIN_MS", 5_000)


Record = list[Entry]
Step = tuple[int, str, tuple[int, ...]]
FAR_MS, HOUR_MS = 10**9, 3_600_000


def tick(move: int, settled: int = 1, after_ms: int = 1_100) -> Step:
    return after_ms, "tick", (move, 2, 0, settled)


def cancel(which: int) -> Step:
    return 500, "cancel", (which,)


LOOK, REQUEST, RESTART = (10, "look", ()), (500, "request", ()), (500, "restart", ())
PUSHED = 500, "source", (1,)
MINUTE, MINUTE_DOWN = (500, "minute", (3, 5, 2)), (500, "minute", (60, 5, 0))


def story(
    *steps: Step, is_buy: bool = True, expires_ms: int = FAR_MS, heard: Step = LOOK, ahead_ms: int = 0
) -> Plan:
    return Plan(is_buy, 1, 20, 30, expires_ms, 40, [heard, *steps], ahead_ms)


STORIES: dict[tuple[str, ...], Plan] = {
    ("take_profit", "target", "tick", ""): story(tick(1), tick(-5), tick(3), tick(60)),
    ("take_profit", "target", "tick", "", "in other hands meanwhile"): story(
        *(tick(1), PUSHED, tick(2), (500, "source", (2,)), MINUTE, tick(3), tick(60))
    ),
    ("stop_loss", "stop", "tick", ""): story(tick(1), tick(5), tick(-60)),
    ("stop_loss", "stop", "tick", "long after its fill"): story(
        *(tick(1), tick(1, after_ms=15_000), tick(-60, after_ms=15_000))
    ),
    ("stop_loss", "stop", "first_after_gap", ""): story(tick(1), tick(60, after_ms=25_000), is_buy=False),
    ("stop_loss", "stop_at_open", "candle", ""): story(tick(1), tick(5), MINUTE, MINUTE_DOWN),
    ("manual", "current", "tick", ""): story(
        *(RESTART, tick(1), REQUEST, LOOK, tick(-3, settled=0), RESTART, tick(5)), is_buy=False
    ),
    ("manual", "current", "tick", "requested before the fill"): story(REQUEST, LOOK, tick(1), tick(5)),
    ("manual", "current", "tick", "staff"): story(tick(1), REQUEST, cancel(0), LOOK, tick(2)),
    ("expired", "current", "tick", ""): story(
        *(tick(1), tick(5), tick(2), tick(2, settled=0), tick(3)), expires_ms=4_000
    ),
    ("expired", "worst", "candle", ""): story(tick(1), MINUTE, expires_ms=90_000),
    ("cancelled", "current", "tick", "staff"): story(tick(1), tick(5), cancel(0), LOOK, tick(2)),
    ("cancelled", "current", "tick", "kind_changed"): story(tick(1), tick(5), tick(2), cancel(2), tick(9)),
    ("cancelled", "current", "tick", "deactivated"): story(
        *(tick(1), tick(5), cancel(3), MINUTE_DOWN), ahead_ms=HOUR_MS
    ),
    ("cancelled", "current", "tick", "withheld"): story(tick(1), tick(5), tick(2), cancel(4), tick(9)),
    ("cancelled", "current", "tick", "withheld", "and nobody was told that it was stopped"): story(
        *(tick(1), tick(5), (500, "withhold", ()), tick(-60), cancel(4), tick(9))
    ),
    ("cancelled", "current", "tick", "staff", "before its tick the kind changes"): story(
        *(tick(1), PUSHED, tick(5), cancel(0), LOOK, tick(-3, settled=0), cancel(2), tick(9))
    ),
    ("cancelled", "current", "tick", "staff", "not heard of, and withheld"): story(
        *(tick(1), MINUTE, tick(5), cancel(0), cancel(4))
    ),
    ("stop_loss", "stop", "tick", "at its fill"): story(tick(-60)),
    ("", "fill", "tick", "not at a price from before it was asked for"): story(
        *((1_100, "tick", (-9, 2, 1_101, 1)), (1_000, "tick", (8, 2, 2_000, 1)))
    ),
    ("manual", "current", "tick", "not at a price from before it was requested"): story(
        *(tick(1), REQUEST, LOOK, (1_100, "tick", (-9, 2, 1_101, 1)), tick(5))
    ),
    ("manual", "current", "first_after_gap", "by a clock an hour ahead"): story(
        *((1_100, "tick", (1, 2, 1_101, 1)), tick(1), MINUTE, REQUEST, LOOK, tick(5)), ahead_ms=HOUR_MS
    ),
    ("expired", "current", "tick", "by a clock an hour behind"): story(
        *((1_100, "tick", (1, 2, 1_101, 1)), tick(1), tick(3, after_ms=2_000)),
        expires_ms=4_000,
        ahead_ms=-HOUR_MS,
    ),
    ("cancelled", "current", "tick", "beyond_target"): story(tick(60)),
    ("cancelled", "current", "tick", "beyond_target", "paid, but not offered"): story(tick(32)),
    ("cancelled", "", "", "no_tick"): story((61_000, "wait", ())),
    ("cancelled", "", "", "no_tick", "armed after unsettled prices"): story(
        *(tick(0, settled=0), tick(0), LOOK, (61_000, "wait", ())), heard=(10, "wait", ())
    ),
    ("cancelled", "", "", "no_tick", "a tick too late"): story(tick(1, after_ms=61_000)),
    ("cancelled", "", "", "not_armed"): story(heard=(6_000, "look", ())),
    ("cancelled", "", "", "market_closed"): story(cancel(1), tick(1)),
    ("", "", "", "staff", "not heard of yet"): story(cancel(0)),
    ("", "", "", "staff", "not heard of in time"): story((6_000, *cancel(0)[1:]), heard=(10, "wait", ())),
    ("", "", "", "staff", "while no engine ran"): story((10, "leave", ()), (61_000, *cancel(0)[1:])),
    ("", "fill", "tick", "in the millisecond in which it was due"): story(tick(1, after_ms=1_000)),
    ("", "fill", "tick", "over, without a tick since"): story(
        *(tick(1), (9_000, "wait", ())), expires_ms=4_000
    ),
    ("", "fill", "tick", "after unsettled prices"): story(
        *(tick(1, settled=0), tick(1, settled=0, after_ms=59_000), tick(1, after_ms=9_000))
    ),
}


def with_stories(test: Callable[[Plan], None]) -> Callable[[Plan], None]:
    """One of each way to end, so that every alteration is made."""
    for plan in STORIES.values():
        test = example(plan)(test)
    return settings(max_examples=100)(given(plans())(test))


def faults(entries: Record, engine: HonestEngine) -> list[str]:
    return contradictions(entries, engine.market, engine.now_ms)


def another(value: Any) -> Any:
    """The next one of its kind."""
    if isinstance(value, bool) or value is None:
        return "1" if value is None else not value
    if isinstance(value, int):
        return value + 1
    if value[:2] == "20" and value[-1:] == "Z":
        return value[:-4] + ("5" if value[-4] != "5" else "6") + value[-3:]
    return str(Decimal(value) + 1) if value.lstrip("-").replace(".", "").isdigit() else f"{value}x"


def altered_results(entries: Record) -> Iterator[tuple[str, Record]]:
    """Each single field of what follows from the rest."""
    for place, entry in enumerate(entries):
        if entry["kind"] not in ("fill", "close"):
            continue
        for inside in ("", "evidence"):
            fields = entry[inside] if inside else entry
            for name in fields or ():
                if name not in ("kind", "signal", "written", "evidence"):
                    made = deepcopy(entries)
                    (made[place][inside] if inside else made[place])[name] = another(fields[name])
                    yield f"{entry['kind']} {inside} {name}", made


@pytest.mark.parametrize("module", [exits, record, judging, contradicting, venue_days])
def test_those_who_check_a_record_need_the_standard_library_alone(module: ModuleType) -> None:
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Import):
            assert {name.name for name in node.names} <= sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom) and not node.level:
            assert str(node.module).partition(".")[0] in sys.stdlib_module_names


@pytest.mark.parametrize("ending", STORIES, ids=", ".join)
def test_the_stories_end_in_every_way(ending: tuple[str, ...]) -> None:
    engine = HonestEngine(STORIES[ending])
    end = engine.entries[-1]
    by = end.get("evidence") or {"rule": "", "source": ""}
    assert (end.get("close_reason", ""), by["rule"], by["source"]) == ending[:3]
    assert engine.cause in ("", ending[3])


def test_the_minute_of_the_fill_says_nothing_of_what_came_after_it() -> None:
    engine = HonestEngine(story(tick(1), tick(5), tick(2), tick(60)))
    assert engine.filled is not None
    place = engine.market.index(engine.filled) + 1
    prices = map(Decimal, (1, 1, 2_000, 3, 2_002))
    engine.market.insert(place, Minute(START_MS - 1, *prices))
    assert faults(engine.entries, engine) == []


@with_stories
def test_true_records_hold_with_every_tick_and_without(plan: Plan) -> None:
    engine = HonestEngine(plan)
    assert judge(engine.entries, engine.market, engine.now_ms).state == engine.state
    assert faults(engine.entries, engine) == []
    assert contradictions(engine.entries) == []


@with_stories
def test_true_records_hold_with_the_ticks_around_what_decided(plan: Plan) -> None:
    engine = HonestEngine(plan)
    ticks = [each for each in engine.market if isinstance(each, Tick)]

    def ticks_of(publish: Payload, since_ms: int, until_ms: int) -> list[Tick]:
        return [each for each in ticks if since_ms <= each.accepted_ms <= until_ms]

    assert by_windows(engine.entries, [*windows(engine.entries, ticks_of)]) == []


@with_stories
def test_with_every_tick_each_altered_result_is_named(plan: Plan) -> None:
    engine = HonestEngine(plan)
    for what, entries in altered_results(engine.entries):
        assert faults(entries, engine), what


@pytest.mark.parametrize(("after_ms", "is_true"), [(5_000, True), (5_001, False)])
def test_fill_is_left_untold_only_where_its_prices_are_withheld_at_once(
    after_ms: int, *, is_true: bool
) -> None:
    """Who could wait would see first what comes of it."""
    engine = HonestEngine(story(tick(1), (after_ms, "cancel", (4,))))
    entries = [each for each in engine.entries if each["kind"] != "fill"]
    entries[-1] |= judging.unfilled(Decimal(entries[0]["entry"]), entries[-1]["closed_at"])
    assert (faults(entries, engine) == []) is is_true


def test_request_is_not_put_off_by_an_arm_of_another_numbering_and_a_clock_that_was_never_so() -> None:
    """Who asked to close may regret it, and have the login of the database."""
    engine = HonestEngine(story(tick(1), REQUEST, tick(2), tick(3), tick(60)))
    place = next(n for n, each in enumerate(engine.entries) if each["kind"] == "close_request") + 1
    at = {name: engine.entries[place - 1][name] for name in ("at", "written")}
    where = {"number": 1, "epoch": "elsewhere", "seq": 1, "wait_ms": 1_000, "unsettled_ms": 0}
    arm: Entry = {"kind": "arm", "for": "close_request", **at, **where}
    assert faults([*engine.entries[:place], arm, *engine.entries[place:]], engine)
    arm |= {"ahead_ms": -MOST_AHEAD_MS}
    assert faults([*engine.entries[:place], arm, *engine.entries[place:]], engine)


WHICH = ("seq", "epoch", "accepted_ms", "feed", "unsettled_ms")
DECIDES = {
    "stop_at_open": ("bid_open",) * 2,
    **dict.fromkeys(("stop_at_worst", "worst"), ("bid_low", "ask_high")),
}


def left_open(entries: Record) -> set[str]:
    """What nothing contradicts in a record without ticks: which tick it was, who made it, and idle prices."""
    side = 0 if entries[0]["direction"] == "buy" else 1
    close = last(entries, "close")
    rule = close["evidence"]["rule"] if close and close["evidence"] else ""
    minute = {"bid_open", "bid_low", "bid_high", "ask_low", "ask_high"} - {DECIDES.get(rule, ("", ""))[side]}
    of_fill = {*WHICH, "at", ("bid", "ask")[side]}
    of_close = {
        *WHICH,
        "settled",
        ("ask", "bid")[side],
        *minute,
        *(("bid", "ask") if rule == "target" else ()),
    }
    return {f"fill evidence {name}" for name in of_fill} | {f"close evidence {name}" for name in of_close}


@with_stories
def test_without_ticks_each_result_that_the_evidence_contradicts_is_named(plan: Plan) -> None:
    engine = HonestEngine(plan)
    for what, entries in altered_results(engine.entries):
        assert what in left_open(engine.entries) or contradictions(entries), what


def later(at: str, by_ms: int) -> str:
    return iso(ms_of(at) + by_ms)


def last(entries: Record, kind: str, asked: str = "") -> Any:
    found = [each for each in entries if each["kind"] == kind and each.get("for", "") == asked]
    return found[-1] if found else None


def due_by_arms(entries: Record) -> Iterator[tuple[Entry, Entry]]:
    """Each `arm` that counted, and the evidence of the tick that was due by it."""
    fill, close, cancel = (last(entries, kind) for kind in ("fill", "close", "cancel"))
    if fill:
        yield last(entries, "arm", "fill"), fill["evidence"]
    if close and close["close_reason"] == "manual":
        yield last(entries, "arm", "close_request"), close["evidence"]
    is_later = close and fill and close["evidence"]["seq"] > fill["evidence"]["seq"]
    is_at_last = any(last(entries, "arm", cause) for cause in AT_LAST)
    if is_later and close["close_reason"] == "cancelled" and cancel["cause"] == "staff" and not is_at_last:
        yield last(entries, "arm", "cancel"), close["evidence"]


def put(entries: Record, which: Entry, **fields: Any) -> Record:
    return [each | fields if each is which else each for each in entries]


def without(entries: Record, which: Entry) -> Record:
    return [each for each in entries if each is not which]


def altered_terms(entries: Record) -> Iterator[tuple[str, Record]]:
    publish, is_buy = entries[0], entries[0]["direction"] == "buy"
    shown = publish["tradable_price"]
    yield "other side", put(entries, publish, direction="sell" if is_buy else "buy")
    yield "better entry", put(entries, publish, entry=str(int(shown) - (1 if is_buy else -1)))
    yield "another price shown", put(entries, publish, tradable_price=another(shown))
    yield "published earlier", put(entries, publish, published_at=later(publish["published_at"], -6_000))
    beyond = str(int(publish["entry"]) + (1 if is_buy else -1))
    yield "stop beyond the entry", put(entries, publish, stop_loss=beyond)
    close = last(entries, "close")
    if close and close["pnl"] != "0":
        yield "another pip size", put(entries, publish, pip_size="0.5")
    lacking = {name: value for name, value in publish.items() if name != "rank_unit"}
    yield "no rank unit", [lacking, *entries[1:]]
    yield "written earlier", put(entries, entries[-1], written=later(entries[-1]["written"], -(10**7)))


def altered_arms(entries: Record) -> Iterator[tuple[str, Record]]:
    for arm, by in due_by_arms(entries):
        wait_ms, place = by["accepted_ms"] - ms_of(arm["at"]), entries.index(arm) + 1
        again = arm | {"number": arm["number"] + 1}
        yield "armed at its tick", put(entries, arm, seq=by["seq"], epoch=by["epoch"])
        yield "waits longer", put(entries, arm, wait_ms=wait_ms + 1)
        yield "waits too little", put(entries, arm, wait_ms=999)
        # Whoever may choose the wait may choose the tick.
        yield "waits too long", put(entries, arm, wait_ms=MOST_WAIT_MS + 1)
        yield "due at a price from before", put(entries, arm, at=later(by["at"], arm["ahead_ms"] + 1))
        late_ms = by["accepted_ms"] - ms_of(by["at"])
        yield "a clock that is behind", put(entries, arm, ahead_ms=late_ms - wait_ms - 1)
        if wait_ms <= NEAR_MS:
            yield "a clock that is ahead", put(entries, arm, ahead_ms=late_ms + MOST_WAIT_MS + 1)
        yield "a clock of another day", put(entries, arm, ahead_ms=MOST_AHEAD_MS + 1)
        yield "armed later", put(entries, arm, at=later(arm["at"], wait_ms - arm["wait_ms"] + 1))
        yield "another number", put(entries, arm, number=arm["number"] + 1)
        yield "armed again in the same numbering", [*entries[:place], again, *entries[place:]]
        if arm["number"] == 1:
            yield "never armed", without(entries, arm)


def altered_fills(entries: Record) -> Iterator[tuple[str, Record]]:
    publish, fill, close, cancel = (last(entries, kind) for kind in ("publish", "fill", "close", "cancel"))
    if not fill:
        return
    arm, place = last(entries, "arm", "fill"), entries.index(fill)
    long_ago = {name: later(publish[name], -6_000) for name in ("published_at", "written")}
    yield "armed too late", put(entries, publish, **long_ago)
    not_yet = fill["evidence"] | {"accepted_ms": fill["evidence"]["accepted_ms"] + 20_000}
    yield "written before its tick", put(entries, fill, evidence=not_yet)
    yield "armed after its fill", [*without(entries[: place + 1], arm), arm, *entries[place + 1 :]]
    yield "filled by the rules of before", put(entries, publish, rules=1)
    if close:
        yield "never filled", without(entries, fill)
    if close and (by := close["evidence"])["seq"] > (at := fill["evidence"])["seq"]:
        ticks = [{name: each[name] for name in at if name != "rule"} for each in (by, at)]
        filled, closed = fill | {"evidence": at | ticks[0]}, close | {"evidence": by | ticks[1]}
        yield "fill and end changed places", [*put(entries, fill, **filled)[:-1], closed]
        earlier = by | {"seq": at["seq"] - 1, "epoch": at["epoch"]}
        yield "closed before its fill", put(entries, close, evidence=earlier)
        accepted = by | {"accepted_ms": at["accepted_ms"] - 1}
        yield "accepted before its fill", put(entries, close, evidence=accepted)
        if close["close_reason"] == "cancelled" and cancel["cause"] in ("kind_changed", "deactivated"):
            cancel_arm = last(entries, "arm", "cancel")
            yield "cancelled at an earlier price", put(entries, cancel_arm, seq=by["seq"] - 1)


def altered_ends(entries: Record) -> Iterator[tuple[str, Record]]:
    close, cancel, request = (last(entries, kind) for kind in ("close", "cancel", "close_request"))
    if request:
        yield "requested earlier", put(entries, request, at=later(request["at"], -6_000))
    if request and last(entries, "arm", "close_request"):
        yield "armed without a request", without(entries, request)
    if close:
        yield "closed twice", [*entries, close]
        yield "closed by the rules of before", put(entries, close, rules=1)
    if close and close["close_reason"] == "cancelled":
        yield "never cancelled", without(entries, cancel)
        is_armed = any(last(entries, "arm", asked) for asked in ("cancel", *AT_LAST))
        cause = "no_tick" if is_armed else "staff"
        yield "another cause", put(entries, cancel, cause=cause)


def altered_extremes(entries: Record) -> Iterator[tuple[str, Record]]:
    """Each with the R that it gives."""
    publish, fill, close = (last(entries, kind) for kind in ("publish", "fill", "close"))
    if not fill or not close:
        return
    sign, by, at = 1 if publish["direction"] == "buy" else -1, close["evidence"], fill["evidence"]
    paid = sign * max(sign * int(publish["entry"]), sign * int(fill["fill_price"]))
    known = sorted((sign * int(at["bid" if sign == 1 else "ask"]), sign * int(close["close_price"])))
    stop, target = int(publish["stop_loss"]), int(publish["take_profit"])
    other = {"best": sign * (known[1] - 1), "worst": sign * (known[0] + 1)}, {"best": target, "worst": stop}
    for name, price in (pair for each in other for pair in each.items()):
        if sign * int(by[name]) != sign * price and not (
            name == "worst" and close["close_reason"] == "stop_loss"
        ):
            in_r = half_away(Fraction(sign * (price - paid), sign * (paid - stop)), 4)
            fields = {f"{name}_r": in_r, "evidence": by | {name: str(price)}}
            yield f"{name} of {price}", put(entries, close, **fields)


def altered_facts(entries: Record) -> Iterator[tuple[str, Record]]:
    """Each fact that something else in the record contradicts."""
    for alter in (altered_terms, altered_arms, altered_fills, altered_extremes, altered_ends):
        yield from alter(entries)


@with_stories
def test_each_altered_fact_that_the_record_contradicts_is_named_even_without_ticks(plan: Plan) -> None:
    engine = HonestEngine(plan)
    for what, entries in altered_facts(engine.entries):
        assert contradictions(entries), what
        assert faults(entries, engine), what


@pytest.mark.parametrize(
    ("ahead_ms", "is_named"),
    [(-LATE_MS - 1, True), (-LATE_MS, False), (MOST_WAIT_MS, False), (MOST_WAIT_MS + 1, True)],
)
def test_with_every_tick_a_clock_that_nobody_had_is_named_though_nothing_came_of_it(
    ahead_ms: int, *, is_named: bool
) -> None:
    engine = HonestEngine(story(*[tick(1, after_ms=200)] * SEVERAL, (61_000, "wait", ())))
    entries = put(engine.entries, last(engine.entries, "arm", "fill"), ahead_ms=ahead_ms)
    assert bool(faults(entries, engine)) is is_named
    assert contradictions(entries) == []


CHANGES = ({"risk": 1}, {"reward": 1}, {"reward": -1}, {"expires_ms": 2_000}, {"expires_ms": -2_000})


def results(engine: HonestEngine) -> Record:
    found = [entry for entry in engine.entries if entry["kind"] in ("fill", "close")]
    return [{name: value for name, value in entry.items() if name != "written"} for entry in found]


@with_stories
def test_with_every_tick_an_altered_term_is_named_wherever_it_would_have_changed_the_result(
    plan: Plan,
) -> None:
    engine = HonestEngine(plan)
    for change in CHANGES:
        more = {name: getattr(plan, name) + value for name, value in change.items()}
        other = HonestEngine(plan._replace(**more))
        found = faults([other.entries[0], *engine.entries[1:]], engine)
        assert bool(found) == (results(other) != results(engine)), change


@with_stories
def test_a_record_of_other_prices_is_named(plan: Plan) -> None:
    engine = HonestEngine(plan)
    if any(what == "restart" for _, what, _ in plan.steps):
        # An engine that begins a new numbering may have lost the very tick.
        return
    for place, (wait_ms, what, numbers) in enumerate(plan.steps):
        # How long prices were unsettled before a cancellation is the engine's word until the next tick.
        if what == "tick" and numbers[-1]:
            without = [*plan.steps[:place], (wait_ms, "wait", ()), *plan.steps[place + 1 :]]
            other = HonestEngine(plan._replace(steps=without))
            assert faults(other.entries, engine) or results(other) == results(engine)
