"""The ledger's own order: when each entry was written, which must be there before it, and who is of the demo.
The forgers here have the login of the database, and every trigger stands."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.utils import timezone

from accounts.models import Account, User
from core.version import known_rules
from signals_feed.contradictions import WRITTEN_WITHIN_MS
from signals_feed.exits import Tick
from signals_feed.judge import Verdict, judge
from signals_feed.ledger import new_rules
from signals_feed.ledger.guards import put_up_triggers, take_down_triggers
from signals_feed.ledger.ledger import (
    AT_ONCE,
    NO_SIGNAL,
    Fact,
    LedgerEntry,
    LedgerHead,
    canonical,
    closure_payload,
    database_clock,
    fill_payload,
    plain,
    publication_payload,
)
from signals_feed.ledger.verify import OrderCheck, verify
from signals_feed.ledger_days import position_before, position_now
from signals_feed.marks import PUBLISHED_LATE, Mark
from signals_feed.models import Evidence, RulesBegun, Signal
from signals_feed.publishing.actions import remove_demo
from signals_feed.record import Payload, iso, ms_of
from signals_feed.result_checks import ResultCheck, check_signals
from tests.factories import RESULT, closed_terms, make_account, make_tiers, make_user
from tests.signals_feed import filled_signals
from tests.signals_feed.published_signals import ASK, BID, TERMS, close_at, make_published

from . import by_hand
from .by_hand import add, add_now, later, publish_by_rules_2

pytestmark = [pytest.mark.django_db, pytest.mark.services]
ARM: dict[str, Any] = {"for": "fill", "number": 1, "epoch": "e", "seq": 7, "wait_ms": 1000, "unsettled_ms": 0}
AGO = timedelta(days=3)
# Beyond what may lie between two clocks, and well within.
FAR_S, NEAR_S = WRITTEN_WITHIN_MS // 1_000 + 50, 40


def forge_winner(publisher: User, written_s: float | None = None, **facts: Any) -> None:
    """Three days old, with the evidence of prices that were real."""
    at = timezone.now().replace(microsecond=0) - AGO
    terms = {name: Decimal(price) for name, price in TERMS.items()}
    dated = {"published_at": at, "expires_at": at + timedelta(days=7)}
    instrument = make_published(user=make_user("somebody")).instrument
    row = {"instrument": instrument, "user": publisher, "direction": "buy"} | terms | dated
    is_demo, rules = facts.get("demo", False), facts.get("rules", 1)
    signal = Signal.objects.create(is_demo=is_demo, rules=rules, **row)
    quote = {"signal": signal, "source": "tick", "epoch": "e"}
    entry = Evidence.objects.create(kind="entry", rule="quote", at=at, bid=BID, ask=ASK, seq=1, **quote)
    names = {"user": f"publisher-{publisher.pk}", "symbol": instrument.symbol}
    payload = publication_payload(signal, entry) | names | facts
    written = {} if written_s is None else {"written": later(database_clock(), written_s)}
    add("publish", signal.pk, **(written | payload))
    hit_at = at + timedelta(hours=1)
    end = {"status": "closed", "closed_at": hit_at, "worst_r": Decimal("-0.0313")}
    ended = closed_terms(row | end, instrument)
    Signal.objects.filter(pk=signal.pk).update(**{name: ended[name] for name in RESULT if name in ended})
    signal.refresh_from_db()
    prices = {"bid": terms["take_profit"], "ask": "1.0901", "best": terms["take_profit"], "worst": BID}
    hit = {"at": hit_at, "seq": 9} | prices
    exit_ = Evidence.objects.create(kind="exit", rule="target", **hit, **quote)
    add("close", signal.pk, **closure_payload(signal, exit_), pip_size=plain(instrument.pip_size))


@pytest.mark.parametrize(
    ("written_s", "facts"),
    [
        (-AGO.total_seconds(), {}),
        (None, {"written": "now", "rules": 2}),
        (0, {"rules": 2}),
        (0, {"demo": True}),
    ],
)
def test_winner_dated_back_is_refused(written_s: float | None, facts: dict[str, Any]) -> None:
    anna = make_user()
    make_published(user=anna)
    with pytest.raises(IntegrityError), transaction.atomic():
        forge_winner(anna, written_s, **facts)


@pytest.mark.parametrize("written_s", [None, 0])
def test_winner_dated_back_by_the_rules_of_before_is_named(written_s: float | None) -> None:
    forge_winner(make_user(), written_s)
    assert "is dated" in verify().fault


def test_publication_by_the_rules_of_before_is_a_warning_once_others_have_begun() -> None:
    RulesBegun.objects.create(rules=2, begun_at=publish_by_rules_2(number=1).published_at)
    call_command("verify_ledger", stdout=(out := StringIO()))
    assert "Warning" not in out.getvalue()
    late = make_published()
    call_command("verify_ledger", stdout=(out := StringIO()))
    assert "Warning: Entry 2 " in out.getvalue()
    check = check_signals([late])[late.pk]
    assert check == ResultCheck("", Mark.NOT_VERIFIED, PUBLISHED_LATE)
    filled_signals.make_filled(make_user("bert"), price=Decimal("1.0842"))
    found = verify()
    assert ("does not hold" in found.fault, len(found.warnings)) == (True, 1)


@pytest.mark.parametrize(
    "forgery",
    [
        "INSERT INTO signals_feed_rulesbegun (rules, begun_at) VALUES (3, '2030-01-01')",
        "INSERT INTO signals_feed_rulesbegun (rules, begun_at) VALUES (2, '2020-01-01')",
        "UPDATE signals_feed_rulesbegun SET begun_at = '2020-01-01'",
        "DELETE FROM signals_feed_rulesbegun",
    ],
)
def test_losers_do_not_count_nowhere_because_rules_begin_otherwise(
    monkeypatch: pytest.MonkeyPatch, forgery: str
) -> None:
    monkeypatch.setattr(known_rules, "asked", [lambda: 2])
    close_at(make_published(published_at=(ahead := timezone.now() + timedelta(seconds=9))), BID, ASK)
    if not forgery.startswith("INSERT"):
        new_rules.begin_when_known()
        assert RulesBegun.objects.get().begun_at == ahead
    with pytest.raises(IntegrityError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(forgery)


def test_payload_that_two_readers_understand_otherwise_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two members of one name SQLite goes by the first, and the judge by the last."""
    now = canonical({"written": database_clock()})[:-1]
    monkeypatch.setattr(by_hand, "canonical", lambda payload: f"{now},{canonical(payload)[1:]}")
    # PostgreSQL goes by the last as well, and would refuse more than a second.
    publish_by_rules_2(number=1, written_s=-1, dated_s=-1)
    assert "is not written as the ledger writes" in verify().fault


def test_real_losers_are_not_removed_as_those_of_a_demo() -> None:
    """Whatever the account says meanwhile."""
    make_tiers()
    loser = make_published()
    close_at(loser, Decimal("1.0820"), Decimal("1.0821"))
    make_account(loser.user, is_demo=True)
    with pytest.raises(IntegrityError, match="of the demo"), transaction.atomic():
        remove_demo([loser.user_id])
    Account.objects.update(is_demo=False)
    assert verify().fault == ""


def test_losers_that_the_version_before_wrote_are_not_removed_as_those_of_a_demo() -> None:
    make_tiers()
    real = make_published()
    loser = Signal.objects.create(**copy_of(real), is_demo=None)
    add("publish", loser.pk)
    make_account(real.user, is_demo=True)
    with pytest.raises(IntegrityError, match="of the demo"), transaction.atomic():
        add("remove", loser.pk)


def test_result_that_its_own_evidence_contradicts_is_named() -> None:
    close_at(make_published(), Decimal("1.0800"), Decimal("1.0801"), "take_profit")
    assert "does not hold" in verify().fault


FALSE_FILLS: dict[str, tuple[dict[str, Any], str]] = {
    "a better price": ({"price": Decimal("1.0842")}, "the fill's fill_price is 1.0842"),
    "a price from before it was due": ({"later_ms": -1}, "makes no fill"),
    "a price from before its arm": ({"seq": 7}, "makes no fill"),
    "an unsettled price": ({"settled": False}, "makes no fill"),
    "a price after its minute": ({"later_ms": 60_000}, "it has ended"),
    "a price that stops it": ({"bid": Decimal("1.0810")}, "the ledger has no close of it"),
    "a price that was made up": ({"feed": "demo"}, "the rules give True"),
}


@pytest.mark.parametrize(("forged", "sentence"), FALSE_FILLS.values(), ids=FALSE_FILLS)
def test_false_fill_is_named_while_the_signal_is_open(forged: dict[str, Any], sentence: str) -> None:
    signal = filled_signals.make_filled(**forged)
    assert sentence in verify().fault
    check = check_signals([signal])[signal.pk]
    assert (sentence in check.fault, check.mark) == (True, Mark.NOT_VERIFIED)


def test_every_entry_says_when_it_was_written() -> None:
    first = make_published()
    close_at(first, BID, ASK)
    make_published(user=first.user)
    told = [json.loads(entry.payload) for entry in LedgerEntry.objects.order_by("position")]
    written = [each["written"] for each in told]
    assert written == sorted(written)
    assert [(each["number"], each["demo"]) for each in told if each["kind"] == "publish"] == [
        (1, False),
        (2, False),
    ]


@pytest.mark.parametrize(("ahead_s", "by_version_before"), [(3600, []), (3, ["close"])])
def test_what_is_written_after_the_clock_was_set_back_waits_for_it(
    ahead_s: float, by_version_before: list[str]
) -> None:
    take_down_triggers()
    ahead, signal = later(database_clock(), ahead_s), make_published()
    add("cancel", signal.pk, written=ahead)
    for kind in by_version_before:
        add(kind, signal.pk)
    put_up_triggers()
    make_published()
    last = LedgerEntry.objects.latest("position")
    assert json.loads(last.payload)["written"] >= ahead


def test_a_machine_that_stood_still_writes_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    now = database_clock()
    looks = iter([later(now, -FAR_S)])
    monkeypatch.setattr(
        "signals_feed.ledger.ledger.database_clock", lambda: next(looks, None) or database_clock()
    )
    make_published()
    assert json.loads(LedgerEntry.objects.get().payload)["written"] >= now


def test_many_entries_are_written_in_several_turns() -> None:
    with transaction.atomic():
        LedgerEntry.objects.append([Fact("cancel", uuid.uuid4(), {}) for _ in range(2 * AT_ONCE + 1)])
    last = LedgerEntry.objects.latest("position")
    assert str(LedgerHead.objects.get()) == f"{2 * AT_ONCE + 1}:{last.hash}"


def judged(signal: Signal, *arms: LedgerEntry) -> Verdict:
    """With one tick after another, each the first that is due after its arm."""
    entries = LedgerEntry.objects.filter(signal=signal.pk).order_by("position")
    ticks = []
    for seq, arm in enumerate(arms, 8):
        at_ms = ms_of(json.loads(arm.payload)["at"]) + ARM["wait_ms"]
        ticks.append(Tick(BID, ASK, at_ms, "f", seq, at_ms, "push:7"))
    return judge([json.loads(each.payload) for each in entries], ticks, 0)


def evidence_of(signal: Signal, kind: str, made: Payload | None) -> Evidence:
    assert made is not None
    return Evidence.objects.create(signal=signal, kind=kind, **made["evidence"])


def close_by_rules_2() -> Signal:
    """A whole story: armed, armed again after a restart, filled, asked to close, and closed."""
    signal = publish_by_rules_2(number=1)
    add_now("arm", signal.pk, **ARM)
    arms = [add_now("arm", signal.pk, **(ARM | {"number": 2, "epoch": "f"}))]
    fill = evidence_of(signal, "fill", judged(signal, *arms).fill)
    Signal.objects.filter(pk=signal.pk).update(fill_price=ASK, filled_at=fill.at)
    signal.refresh_from_db()
    add_now("fill", signal.pk, **fill_payload(signal, fill))
    add_now("close_request", signal.pk)
    # After the fill, whose tick is a second after its arm.
    asked = {"for": "close_request", "epoch": "f", "seq": 8}
    arms.append(add_now("arm", signal.pk, dated_s=2, **(ARM | asked)))
    close = judged(signal, *arms).close
    exit_ = evidence_of(signal, "exit", close)
    ended = {name: close[name] for name in RESULT if close and name in close}
    Signal.objects.filter(pk=signal.pk).update(status="closed", **ended)
    signal.refresh_from_db()
    add_now("close", signal.pk, rules=2, **closure_payload(signal, exit_))
    return signal


def test_day_ends_with_its_last_entry_of_any_kind() -> None:
    soon = timezone.now() + timedelta(minutes=1)
    signal = publish_by_rules_2(number=1)
    add_now("arm", signal.pk, **ARM)
    assert position_before(soon) == position_now()
    # The tick counts, which may be one of the day before.
    add_now("fill", signal.pk, fill_price="1.0842", evidence={"at": later(database_clock(), -86_400)})
    assert position_before(soon - timedelta(days=1)) == position_now()
    add_now("archive", NO_SIGNAL, day="2026-11-28", manifest_sha256="0" * 64)
    assert position_before(soon) == position_now()
    assert position_before(soon - timedelta(days=1)).position == 3


def test_a_story_by_rules_2_holds() -> None:
    close_by_rules_2()
    add_now("archive", NO_SIGNAL, day="2026-11-28", manifest_sha256="0" * 64)
    assert verify().fault == ""


@pytest.mark.parametrize(
    ("alter", "sentence"),
    [
        (lambda: Signal.objects.update(fill_price="1.0843"), "fill_price is 1.0843"),
        (lambda: Signal.objects.update(filled_at=F("published_at")), "filled_at is not the time"),
        (lambda: Signal.objects.update(rules=1), "rules is 1, it was 2"),
        (lambda: Signal.objects.update(rank_unit="0.0031"), "rank_unit is 0.0031"),
        (lambda: Signal.objects.update(is_demo=True), "demo is true"),
        (lambda: Evidence.objects.filter(kind="fill").update(feed="kraken"), '"feed":"kraken"'),
        (lambda: LedgerEntry.objects.filter(kind="arm").update(part=F("position")), "Entry 2 .* was altered"),
    ],
)
def test_altered_rows_of_a_story_by_rules_2_are_named(alter: Callable[[], object], sentence: str) -> None:
    close_by_rules_2()
    take_down_triggers()
    alter()
    put_up_triggers()
    assert re.search(sentence, verify().fault)


RULES_AND_ARMS, WRITTEN, DATED = "A fill follows its arm", "says when it is written", "other than they are"
Act = Callable[[Signal], object]
REFUSED: dict[str, tuple[Act, str]] = {
    "an arm of a signal by the rules of before": (
        lambda _: add_now("arm", make_published().pk, **ARM),
        RULES_AND_ARMS,
    ),
    "an arm with another number": (lambda new: add_now("arm", new.pk, "fill:2", **ARM), RULES_AND_ARMS),
    "an arm too late": (
        lambda new: add_now("arm", new.pk, dated_s=NEAR_S, written_s=NEAR_S, **ARM),
        RULES_AND_ARMS,
    ),
    "a fill without an arm": (lambda new: add_now("fill", new.pk, fill_price="1.0842"), RULES_AND_ARMS),
    "a close by an older version": (
        lambda new: add_now("close", new.pk, close_reason="stop_loss"),
        RULES_AND_ARMS,
    ),
    "a close by hand that was not asked for": (
        lambda new: add_now("close", new.pk, rules=2, close_reason="manual"),
        RULES_AND_ARMS,
    ),
    "a request after the close": (lambda new: add_now("close_request", closed(new).pk), RULES_AND_ARMS),
    "an arm after the close": (
        lambda new: add_now("arm", closed(new).pk, **(ARM | {"number": 2})),
        RULES_AND_ARMS,
    ),
    "a cancellation after the close": (lambda new: add_now("cancel", closed(new).pk), RULES_AND_ARMS),
    "a cancellation after a close by the rules of before": (
        lambda _: (close_at(before := make_published(), BID, ASK), add_now("cancel", before.pk)),
        RULES_AND_ARMS,
    ),
    "evidence after the close": (
        lambda new: filled_signals.tick_of(closed(new), "fill", "fill", BID, ASK, "kraken"),
        "Evidence comes before",
    ),
    "a day of the archive under another name": (
        lambda _: add_now("archive", NO_SIGNAL, "2026-11-27", day="2026-11-28"),
        RULES_AND_ARMS,
    ),
    "a day of the archive that names a signal": (
        lambda new: add_now("archive", new.pk, day="2026-11-28"),
        RULES_AND_ARMS,
    ),
    "a second publication": (lambda new: add_now("publish", new.pk, "2"), "ledger_kind_is_known"),
    "an arm twice": (
        lambda new: (add_now("arm", new.pk, **ARM), add_now("arm", new.pk, **ARM)),
        "written once|ledger_tells_a_part_once",
    ),
    "an entry without a time": (
        lambda new: add("close", new.pk, rules=2, close_reason="stop_loss"),
        WRITTEN,
    ),
    "a time in words": (lambda _: add_now("cancel", make_published().pk, written="now"), WRITTEN),
    "a time to come": (lambda _: add_now("cancel", make_published().pk, written_s=FAR_S), WRITTEN),
    "a time before the last one's": (
        lambda new: (
            add_now("close_request", new.pk, dated_s=NEAR_S, written_s=NEAR_S),
            add_now("arm", new.pk, **ARM),
        ),
        WRITTEN,
    ),
    "a publication dated back": (lambda _: publish_by_rules_2(dated_s=-FAR_S), DATED),
    "an arm dated back": (lambda new: add_now("arm", new.pk, dated_s=-FAR_S, **ARM), DATED),
    "a request dated ahead": (lambda new: add_now("close_request", new.pk, dated_s=FAR_S), DATED),
    "a cancellation dated back": (lambda new: add_now("cancel", new.pk, dated_s=-FAR_S), DATED),
    "a publication that says it is the demo's": (
        lambda new: add_now("publish", Signal.objects.create(**copy_of(new)).pk, demo=True),
        "of the demo",
    ),
    "another signal as the demo's": (
        lambda new: Signal.objects.create(**copy_of(new), is_demo=True),
        "of the demo, or none",
    ),
    "a signal that becomes the demo's": (lambda new: change(new, is_demo=True), "for ever"),
    "other rules": (lambda new: change(new, rules=1), "for ever"),
    "another fill": (lambda new: [change(new, fill_price=price) for price in (ASK, BID)], "for ever"),
}


def closed(signal: Signal) -> Signal:
    add_now("arm", signal.pk, dated_s=-NEAR_S, written_s=-NEAR_S, **ARM)
    add_now("close", signal.pk, rules=2, close_reason="stop_loss")
    return signal


def copy_of(signal: Signal) -> dict[str, Any]:
    given = {field.attname: getattr(signal, field.attname) for field in Signal._meta.concrete_fields}
    return {name: value for name, value in given.items() if name not in ("id", "is_demo")}


def change(signal: Signal, **columns: Any) -> int:
    return Signal.objects.filter(pk=signal.pk).update(**columns)


@pytest.mark.parametrize(("act", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_breaks_the_order_is_refused(act: Act, sentence: str) -> None:
    new = publish_by_rules_2(dated_s=-NEAR_S, written_s=-NEAR_S)
    with pytest.raises(IntegrityError, match=sentence), transaction.atomic():
        act(new)


def test_the_demo_is_dated_back_and_removed() -> None:
    """By the rules that have begun, as by those of before."""
    make_tiers()
    demo = make_user("aurora")
    make_account(demo, is_demo=True)
    signal = publish_by_rules_2(by=demo, demo=True, dated_s=-86_400, number=1)
    add_now("cancel", signal.pk, dated_s=-86_400)
    remove_demo([demo.pk])
    assert verify().fault == ""


def entry(kind: str, second: float, **facts: Any) -> dict[str, Any]:
    at = iso(round(1_000 * second))
    own = {"publish": "published_at", "cancel": "cancelled_at"}.get(kind, "at")
    return {"position": 1, "kind": kind, "signal": "one", "user_id": 7, "written": at, own: at} | facts


def faults(*entries: dict[str, Any], is_demo: bool = False) -> list[str]:
    order = OrderCheck()
    return [fault for each in entries if (fault := order.fault(each, is_demo))]


NEW = entry("publish", 10, rules=2, number=1, demo=False)
OWN = ("arm", "at"), ("close_request", "at"), ("cancel", "cancelled_at")


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ([NEW, entry("arm", 9)], "before the one before it"),
        ([NEW | {"published_at": iso(9_999 - WRITTEN_WITHIN_MS)}], "is dated"),
        *(
            ([NEW, entry(kind, 10) | {name: iso(10_001 + WRITTEN_WITHIN_MS)}], "is dated")
            for kind, name in OWN
        ),
        ([NEW, {"kind": "fill", "signal": "one"}], "does not say when"),
        ([NEW | {"number": 2}], "is number 2"),
        ([entry("publish", 10), NEW], "is number 1"),
        ([NEW, entry("close", 4_000), entry("publish", 399)], "is dated"),
        ([NEW | {"written": 5}], "cannot be read"),
        ([entry("archive", second, day="2026-11-28") for second in (1, 2)], "once more"),
    ],
)
def test_what_breaks_the_order_is_named(entries: list[dict[str, Any]], sentence: str) -> None:
    assert sentence in faults(*entries)[0]


def test_what_is_in_order_is_not_named() -> None:
    late = NEW | {"published_at": iso(10_000 - WRITTEN_WITHIN_MS)}
    story = [late, entry("arm", 11), entry("close_request", 12), entry("cancel", 12), entry("close", 13)]
    assert faults(*story) == []
    demo = NEW | {"demo": True, "published_at": iso(0)}
    assert faults(demo, entry("cancel", 11, cancelled_at=iso(1))) == []
    dated_back = entry("close", 4_000), {**entry("publish", 0), "written": iso(4_000_000)}
    assert faults(*dated_back, is_demo=True) == []
