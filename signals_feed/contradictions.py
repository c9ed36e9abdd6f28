"""What in the ledger's record of a signal contradicts the judge, in sentences: with every price after its
publication each altered fact, and without them each that the record's own evidence contradicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, pairwise
from typing import Any

from . import exits
from .exits import CANCELLED, Minute, Tick
from .judge import Arm, Case, judge
from .record import (
    ARM,
    AT_LAST,
    CANCEL,
    CANDLE,
    CLOSE,
    CLOSE_REQUEST,
    DERIVED,
    FIELDS,
    FILL,
    FIRST_AFTER_GAP,
    MINUTES,
    OWN_TIME,
    PUBLISH,
    RULES,
    SIMULATED,
    TICK,
    VENUES,
    Item,
    Payload,
    evidence_of,
    feeds_of,
    iso,
    item_of,
    ms_of,
    plain,
    tick_of,
)

FILL_AFTER_MS, WRITTEN_WITHIN_MS = 1_000, 5_000
# How late a feed was is measured up to here.
MOST_WAIT_MS = 10_050
# A clock that is further from the venue's is not reckoned with.
MOST_AHEAD_MS = 86_400_000
# Ticks from so shortly before and after an arm tell how far it was, and of so many not all are so late.
NEAR_MS, SEVERAL, LATE_MS = 10_000, 3, 120_000
UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


def contradictions(
    entries: Sequence[Payload],
    market: Iterable[Item] | None = None,
    until_ms: int = 0,
    *,
    is_whole: bool = True,
) -> list[str]:
    """`entries` are the payloads of the signal in the ledger's order; without `market` they are judged from
    their evidence only. With it, a signal that has ended by `until_ms` must have its `close`. `market` is not
    whole if ticks are left out of it in which nothing happened."""
    try:
        case = Case(entries)
        is_whole = is_whole and market is not None and case.is_new
        items = _own_items(entries) if market is None else market
        return [*_disorder(entries, case), *_against_judge(entries, case, items, until_ms, is_whole=is_whole)]
    except UNREADABLE as error:
        return [f"its entries cannot be read ({type(error).__name__}: {error})"]


def by_windows(entries: Sequence[Payload], windows: Sequence[Payload]) -> list[str]:
    """With every tick of some stretches, and the record's own evidence of what was outside them."""
    try:
        stretches: list[tuple[int, int, list[Item]]] = [
            (each["since_ms"], each["until_ms"], [*map(tick_of, each["ticks"])]) for each in windows
        ]
        for item in _own_items(entries):
            at_ms = item.opened_ms if isinstance(item, Minute) else item.accepted_ms or item.time_ms
            is_there = any(since_ms <= at_ms <= until_ms for since_ms, until_ms, _ in stretches)
            if isinstance(item, Minute) or not is_there:
                stretches.append((at_ms, at_ms, [item]))
    except UNREADABLE as error:
        return [f"its ticks cannot be read ({type(error).__name__}: {error})"]
    stretches.sort(key=lambda each: each[0])
    items = [*chain.from_iterable(found for _, _, found in stretches)]
    return contradictions(entries, items if windows else None, is_whole=False)


def _against_judge(
    entries: Sequence[Payload], case: Case, market: Iterable[Item], until_ms: int, *, is_whole: bool
) -> Iterator[str]:
    of = {entry["kind"]: entry for entry in entries}
    fill, close = of.get(FILL), of.get(CLOSE)
    paid = of[PUBLISH]["tradable_price"] if fill is None else fill["fill_price"]
    if not case.is_new and (case.quote is None or (close is not None and close["evidence"] is None)):
        if close is not None:
            yield from _differences("result", close, _figures(case, paid, close["close_price"]), "")
        return
    misplaced: dict[Arm, Tick] = {}
    lags: dict[Arm, dict[int, int]] = defaultdict(dict)
    verdict = judge(entries, _compared(market, case, misplaced, lags), until_ms)
    for arm, tick in misplaced.items():
        yield f"the arm after tick {arm.seq} is dated {iso(arm.at_ms)}, and tick {tick.seq} tells otherwise"
    for arm, near in lags.items():
        # No tick is accepted before it was made.
        least_ms = min(near.values())
        is_late = len(near) >= SEVERAL and least_ms > arm.ahead_ms + LATE_MS
        if is_late or least_ms < arm.ahead_ms - MOST_WAIT_MS:
            apart = f"{arm.ahead_ms} ms apart, and ticks tell {least_ms} ms"
            yield f"the arm after tick {arm.seq} says that clocks are {apart}"
    made = verdict.close
    if case.is_new:
        yield from _differences(FILL, fill, verdict.fill, verdict.state)
    if close is not None and made is not None:
        if close["close_reason"] == CANCELLED and verdict.cause != case.cause:
            yield f"its cause is {_shown(case.cause)}, and the rules give {_shown(verdict.cause)}"
        made = _as_ended(case, made, close, fill)
        if not is_whole or (_was_bridged(close) and not _was_bridged(made)):
            made = _as_far_as_known(case, made, close, paid)
    yield from _differences(CLOSE, close, made, verdict.state)


def _figures(case: Case, tradable: str, close_price: str) -> Payload:
    """Of a signal that is older than evidence."""
    terms = case.levels.direction, case.entry, case.levels.stop, Decimal(tradable)
    made = exits.result(*terms, Decimal(close_price), case.pip_size)
    return {name: plain(value) for name, value in made._asdict().items()}


def _own_items(entries: Sequence[Payload]) -> list[Item]:
    """By which it was filled and closed."""
    return [item_of(each["evidence"]) for each in entries[1:] if each.get("evidence")]


def _compared(
    market: Iterable[Item], case: Case, misplaced: dict[Arm, Tick], lags: dict[Arm, dict[int, int]]
) -> Iterator[Item]:
    """The same, and notes which `arm` did not come where it says among the ticks of its numbering, and how
    much later than they are dated those near it were accepted, of any numbering: it may name one without
    ticks."""
    arms = [*chain.from_iterable(case.arms.values())] if case.is_new else []
    for item in market:
        for arm in arms:
            if isinstance(item, Tick) and item.accepted_ms:
                later_ms, is_numbered = item.accepted_ms - arm.at_ms, item.epoch == arm.epoch
                is_apart = later_ms > 0 >= item.seq - arm.seq or later_ms < 0 < item.seq - arm.seq
                if is_numbered and is_apart:
                    misplaced.setdefault(arm, item)
                if abs(later_ms) <= NEAR_MS:
                    lags[arm][item.time_ms] = item.accepted_ms - item.time_ms
        yield item


def _differences(kind: str, said: Payload | None, made: Payload | None, state: str) -> Iterator[str]:
    if made is None:
        if said is not None:
            yield f"what its {kind} names makes no {kind}: by the rules it {state}"
        return
    if said is None:
        yield f"it {state}, and the ledger has no {kind} of it"
        return
    if kind == CLOSE and _end(said) != _end(made):
        yield f"judged again it ends by {_end(made)}, and its close says {_end(said)}"
        return
    for name, value in made.items():
        given = said.get(name)
        if isinstance(value, dict) and isinstance(given, dict):
            both = {key: value.get(key) for key in given | value}
            yield from _differences(f"{kind}'s evidence", given, both, state)
        elif value != given:
            yield f"the {kind}'s {name} is {_shown(given)}, and the rules give {_shown(value)}"


def _end(close: Payload) -> str:
    by, how = close["evidence"], f"{close['close_reason']} at {close['close_price']}"
    if not by:
        return how
    which = f"the minute of {by['at']}" if by["source"] == CANDLE else f"tick {by['seq']}"
    return f"{how}, at {which}"


def _shown(value: Any) -> str:
    return "nothing" if value in (None, "") else str(value)


def as_stored(tick: Tick, fill: Tick, at_ms: int) -> Tick:
    """What is known of it where an engine before has stored the quote: not in which numbering it was, which
    key pushed it, or whether it came from the venue's own address. It counts as accepted as late as the fill
    was."""
    name = tick.feed.partition(":")[0]
    accepted_ms = min(at_ms, tick.time_ms + fill.accepted_ms - fill.time_ms)
    feed = name if name in SIMULATED else f"{name}:stored"
    return Tick(tick.bid, tick.ask, tick.time_ms, seq=tick.seq, accepted_ms=accepted_ms, feed=feed)


def _as_ended(case: Case, made: Payload, said: Payload, fill: Payload | None) -> Payload:
    """At its last price, of which the record may know no more than was stored."""
    ends, shown, given = case.at_last[1], made["evidence"], said["evidence"]
    if fill is None or not (ends and shown and given and shown["epoch"]) or given["epoch"]:
        return made
    stored = as_stored(tick_of(shown), tick_of(fill["evidence"]), ends[-1].at_ms)
    feed = feeds_of(stored.feed, {*shown["feed"].split("+")} - {*VENUES})
    evidence = evidence_of(stored, shown["source"], shown["rule"])
    return {**made, "evidence": {**shown, **evidence, "feed": feed}}


def _as_far_as_known(case: Case, made: Payload, said: Payload, tradable: str) -> Payload:
    """Where not every price is known, what the record says of those between counts if it is possible."""
    if not made["evidence"] or not said["evidence"]:
        return made
    shown, given = dict(made["evidence"]), said["evidence"]
    known = {**made, "evidence": shown}
    if {shown["source"], given["source"]} == {TICK, FIRST_AFTER_GAP}:
        shown["source"] = given["source"]
    feeds, given_feeds = (each.get("feed", "").split("+") for each in (shown, given))
    if feeds[0] == given_feeds[0] and {*feeds} < {*given_feeds}:
        shown["feed"] = given["feed"]
    extremes = {name: given[name] for name in ("best", "worst") if name in given}
    if _may_be(case, {name: Decimal(price) for name, price in extremes.items()}, shown):
        terms = case.levels.direction, case.entry, case.levels.stop, Decimal(tradable)
        shown |= extremes
        known |= {f"{name}_r": plain(exits.in_r(*terms, Decimal(price))) for name, price in extremes.items()}
    if not case.is_new:
        # By the rules of before evidence says less, and the service says when a signal ends by hand or time.
        known["evidence"] = {name: value for name, value in shown.items() if name in given}
        is_within = shown["source"] == CANDLE and shown["at"] <= said["closed_at"] <= made["closed_at"]
        if case.arms[CLOSE_REQUEST] or is_within:
            known["closed_at"] = said["closed_at"]
    return known


def _was_bridged(close: Payload) -> bool:
    """By minutes, which are not in the archive of ticks."""
    return MINUTES in (close["evidence"] or {}).get("feed", "").split("+")


def _may_be(case: Case, given: Mapping[str, Decimal], known: Payload) -> bool:
    """Whether the price may have gone that far, and the signal still ended as it did."""
    levels, sign = case.levels, 1 if case.levels.is_buy else -1
    if len(given) < 2:
        return not case.is_new
    best, worst = Decimal(known["best"]), Decimal(known["worst"])
    is_met = exits.is_at_target(levels, given["best"]) and given["best"] != best
    is_met = is_met or (exits.is_stopped(levels, given["worst"]) and given["worst"] != worst)
    is_wider = sign * given["best"] >= sign * best and sign * given["worst"] <= sign * worst
    return is_wider and not (case.is_new and is_met)


def _disorder(entries: Sequence[Payload], case: Case) -> Iterator[str]:
    """What contradicts the rules whatever the prices were."""
    told = [f"{ARM} of {entry['for']}" if entry["kind"] == ARM else entry["kind"] for entry in entries]
    once = [each for each in told if not each.startswith(ARM)]
    if told[0] != PUBLISH or len(set(once)) < len(once) or CLOSE in told[:-1]:
        yield f"its entries are {', '.join(told)}"
    levels, quote = case.levels, case.quote
    low, high = (levels.stop, levels.target) if levels.is_buy else (levels.target, levels.stop)
    if not low < case.entry < high:
        yield "its entry is not between its stop and its target"
    if quote is not None:
        tradable = quote.ask if levels.is_buy else quote.bid
        if entries[0]["tradable_price"] != plain(tradable):
            yield f"its tradable_price is not {plain(tradable)}, as its evidence says"
        if case.is_new and exits.paid_entry(levels.direction, case.entry, tradable) != case.entry:
            yield f"its entry of {case.entry} is better than {plain(tradable)}, which the market offered"
    if case.is_new:
        yield from _lacking(entries)
        yield from _misarmed(case, told)
        yield from () if entries[0]["demo"] else _misdated(entries)
    elif set(told) - {PUBLISH, CANCEL, CLOSE}:
        yield f"it does not follow rules {RULES}, and its entries are {', '.join(told)}"


def _lacking(entries: Sequence[Payload]) -> Iterator[str]:
    for entry in entries:
        if missing := [name for name in FIELDS[entry["kind"]] if name not in entry]:
            yield f"its {entry['kind']} lacks {', '.join(missing)}"
        if entry.get("rules", RULES) != RULES:
            yield f"its {entry['kind']} follows rules {entry['rules']}"


def _misarmed(case: Case, told: Sequence[str]) -> Iterator[str]:
    armed = [asked for asked in (CANCEL, *AT_LAST) if case.arms[asked]]
    if armed and (case.cause in DERIVED or (case.cause in AT_LAST and armed != [CANCEL])):
        yield f"it is armed for {' and '.join(armed)}, and its cause is {case.cause}"
    for asked, arms in case.arms.items():
        places = [place for place, each in enumerate(told) if each == f"{ARM} of {asked}"]
        of = CANCEL if asked in AT_LAST else asked
        place = told.index(of) if of in told else len(told)
        if places and (places[-1] > place if asked == FILL else places[0] < place):
            yield f"an arm of {asked} is on the wrong side of the {asked}"
        if [arm.number for arm in arms] != list(range(1, len(arms) + 1)):
            yield f"the arms of {asked} are not numbered from 1"
        if any(not FILL_AFTER_MS <= arm.wait_ms <= MOST_WAIT_MS for arm in arms):
            yield f"an arm of {asked} does not wait for {FILL_AFTER_MS} to {MOST_WAIT_MS} ms"
        if any(abs(arm.ahead_ms) > MOST_AHEAD_MS for arm in arms):
            yield f"an arm of {asked} is by a clock more than {MOST_AHEAD_MS} ms from the venue's"
        # Within a numbering, a later engine has every tick since the first.
        if any(one.epoch == other.epoch for one, other in pairwise(arms)):
            yield f"an arm of {asked} was written again in the same numbering"


def _misdated(entries: Sequence[Payload]) -> Iterator[str]:
    before_ms = 0
    for entry in entries:
        kind, written_ms = entry["kind"], ms_of(entry["written"])
        if written_ms < before_ms:
            yield f"its {kind} was written before the entry before it"
        own_ms = ms_of(entry[OWN_TIME[kind]]) if kind in OWN_TIME else written_ms
        if abs(own_ms - written_ms) > WRITTEN_WITHIN_MS:
            yield f"its {kind} is dated {entry[OWN_TIME[kind]]} and was written at {entry['written']}"
        if (entry.get("evidence") or {}).get("accepted_ms", 0) > written_ms + WRITTEN_WITHIN_MS:
            yield f"its {kind} was written before its tick was accepted"
        before_ms = written_ms
