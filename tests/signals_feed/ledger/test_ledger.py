"""The ledger: every fact once, in order, and whatever is altered by hand is named."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import QuerySet

from accounts.models import Account
from core.times import epoch_ms_after
from signals_feed.closing import Closing, close_signal
from signals_feed.contradictions import contradictions
from signals_feed.exits import TARGET
from signals_feed.ledger.guards import put_up_triggers, take_down_triggers
from signals_feed.ledger.ledger import LedgerEntry, LedgerHead
from signals_feed.ledger.names import HeldName, is_taken, named_in_ledger
from signals_feed.ledger.verify import NotedHead, verify
from signals_feed.marks import NO_EVIDENCE, Mark
from signals_feed.models import Announcement, Evidence, Signal
from signals_feed.publishing.actions import cancel, remove_demo
from signals_feed.result_checks import ResultCheck, check_signals
from signals_feed.rules import Quoted
from tests.factories import NOON, make_account, make_signal, make_tiers, make_user
from tests.signals_feed.published_signals import ASK, BID, close_at, make_published, make_published_by_name

from .by_hand import add

pytestmark = [pytest.mark.django_db, pytest.mark.services]


def make_story() -> list[Signal]:
    """Published three, closed one, cancelled one."""
    signals = [make_published() for _ in range(3)]
    close_at(signals[0], BID, ASK)
    cancel(signals[1], reason="wrong symbol", by="alice")
    return signals


@contextmanager
def unguarded() -> Iterator[None]:
    """As somebody does who may do everything with the database."""
    take_down_triggers()
    yield
    put_up_triggers()


def sql(statement: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def test_every_fact_is_told_once_in_the_order_it_was_committed() -> None:
    first, second, third = make_story()
    told = list(LedgerEntry.objects.order_by("position"))
    assert [(entry.position, entry.kind, entry.signal) for entry in told] == [
        (1, "publish", first.pk),
        (2, "publish", second.pk),
        (3, "publish", third.pk),
        (4, "close", first.pk),
        (5, "cancel", second.pk),
    ]
    written = json.loads(told[0].payload)
    assert (written["entry"], written["stop_loss"], written["take_profit"]) == ("1.0842", "1.081", "1.09")
    assert (written["evidence"]["bid"], written["evidence"]["ask"]) == ("1.0841", "1.0842")
    # Nobody of the staff is named.
    assert "alice" not in told[4].payload
    previous = "0" * 64
    for entry in told:
        written = json.loads(entry.payload)
        assert entry.payload == json.dumps(written, sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256((previous + entry.payload).encode()).hexdigest()
        assert entry.hash == previous
    assert verify()[:3] == (5, previous, "")
    assert str(LedgerHead.objects.get()) == f"5:{previous}"


def test_the_second_of_two_processes_has_nothing_left_to_remove_of_the_demo() -> None:
    make_published()
    remove_demo([])
    assert verify()[0] == 1


def test_empty_ledger_holds() -> None:
    assert verify()[:3] == (0, "0" * 64, "")


def test_smallest_prices_are_told_without_exponents() -> None:
    prices = {"stop_loss": 1, "entry": 2, "tradable_price": 2, "take_profit": 3}
    terms: dict[str, Any] = {name: Decimal(price).scaleb(-7) for name, price in prices.items()}
    told = json.loads(LedgerEntry.objects.get(signal=make_published(**terms).pk).payload)
    assert {name: told[name] for name in prices} == {name: f"0.000000{each}" for name, each in prices.items()}


def rewrite_from(position: int, before: str = '"1.081"', after: str = '"1.083"') -> None:
    """A forger who knows how the chain is made."""
    head = LedgerEntry.objects.get(position=position - 1).hash
    for entry in LedgerEntry.objects.filter(position__gte=position).order_by("position"):
        text = re.sub(before, after, entry.payload)
        hash_ = hashlib.sha256((head + text).encode()).hexdigest()
        LedgerEntry.objects.filter(pk=entry.pk).update(payload=text, previous=head, hash=hash_)
        head = hash_
    LedgerHead.objects.update(hash=head)


def append(text: str) -> None:
    """A forger who writes what is no fact of ours."""
    head = LedgerHead.objects.get()
    hash_ = hashlib.sha256((head.hash + text).encode()).hexdigest()
    LedgerEntry.objects.create(
        position=6, kind="close", signal=uuid.uuid4(), payload=text, previous=head.hash, hash=hash_
    )
    LedgerHead.objects.update(position=6, hash=hash_)


def reopen(signal: Signal) -> None:
    """Past the constraint that an active signal has no result, as whoever owns the database can."""
    if connection.vendor == "postgresql":
        sql("SET CONSTRAINTS ALL IMMEDIATE")
        sql("ALTER TABLE signals_feed_signal DROP CONSTRAINT signal_closed_iff_result")
    else:
        sql("PRAGMA ignore_check_constraints = 1")
    Signal.objects.filter(pk=signal.pk).update(status="active")
    if connection.vendor != "postgresql":
        sql("PRAGMA ignore_check_constraints = 0")


def set_back() -> int:
    return LedgerHead.objects.update(position=4, hash=LedgerEntry.objects.get(position=4).hash)


def entries(position: int) -> QuerySet[LedgerEntry]:
    return LedgerEntry.objects.filter(position=position)


def rows(signal: Signal) -> QuerySet[Signal]:
    return Signal.objects.filter(pk=signal.pk)


def exits(signal: Signal) -> QuerySet[Evidence]:
    return Evidence.objects.filter(signal=signal, kind="exit")


ENTRY = "UPDATE signals_feed_ledgerentry SET"
LOST_AT: dict[str, Any] = {
    "kind": "exit",
    "source": "tick",
    "rule": "stop",
    "at": NOON,
    "bid": BID,
    "ask": ASK,
}
ALTERED: dict[str, tuple[Callable[[list[Signal]], object], str]] = {
    "a payload": (
        lambda _: sql(f"{ENTRY} payload = payload || ' ' WHERE position = 2"),
        "Entry 2 .* was altered",
    ),
    "a hash": (lambda _: sql(f"{ENTRY} hash = %s WHERE position = 3", "f" * 64), "Entry 3 .* was altered"),
    "a kind": (lambda _: sql(f"{ENTRY} kind = 'remove' WHERE position = 3"), "Entry 3 .* was altered"),
    "a deleted entry": (lambda _: entries(2).delete(), "Entry 2 is missing"),
    "a deleted tail": (lambda _: entries(5).delete(), "Entry 5 is missing"),
    "a tail deleted with its head": (
        lambda _: (entries(5).delete(), set_back()),
        "the ledger has no cancel of it",
    ),
    "a head set back": (lambda _: set_back(), "head of the ledger was altered"),
    "a stop": (
        lambda signals: rows(signals[2]).update(stop_loss="1.0830"),
        "stop_loss is 1.083, it was 1.081",
    ),
    "a result": (lambda signals: rows(signals[0]).update(pnl="99"), "pnl is 99, it was -1"),
    "a tick": (lambda signals: exits(signals[0]).update(bid="1.08"), "evidence is .*it was"),
    "deleted evidence": (lambda signals: exits(signals[0]).delete(), "evidence is nothing, it was"),
    "a deleted signal": (lambda signals: rows(signals[2]).delete(), "of entry 3 was deleted"),
    "a fill from nowhere": (
        lambda signals: rows(signals[2]).update(fill_price="1.08"),
        "the ledger has no fill of it",
    ),
    "an exit that would keep the engine from closing it": (
        lambda signals: Evidence.objects.create(signal=signals[2], **LOST_AT),
        "the ledger has no close of it",
    ),
    "an announced end that would do the same": (
        lambda signals: Announcement.objects.create(position=10**9, signal=signals[2], kind="closed"),
        "the ledger has no close of it",
    ),
    "a loser removed as the demo's": (
        lambda signals: (add("remove", signals[2].pk), signals[2].delete()),
        "of entry 3 was removed, and is not of the demo",
    ),
    "rules": (lambda signals: rows(signals[2]).update(rules=2), "rules is 2, it was nothing"),
    "a signal from nowhere": (
        lambda signals: Signal.objects.create(
            **{
                field.attname: getattr(signals[2], field.attname)
                for field in Signal._meta.concrete_fields
                if field.attname != "id"
            }
        ),
        "the ledger has no publish of it",
    ),
    "a closed signal that is active again": (lambda signals: reopen(signals[0]), "was reopened: entry 4"),
    "an entry that is no JSON": (lambda _: append("nothing"), "Entry 6 .* was altered"),
    "an entry that is another kind of JSON": (lambda _: append("[1]"), "Entry 6 .* was altered"),
    "the rest of the chain, but not the signals": (
        lambda _: rewrite_from(3),
        "stop_loss is 1.081, it was 1.083",
    ),
}


@pytest.mark.parametrize(("alter", "sentence"), ALTERED.values(), ids=ALTERED)
def test_what_was_altered_by_sql_is_named(alter: Callable[[list[Signal]], object], sentence: str) -> None:
    signals = make_story()
    with unguarded():
        alter(signals)
    with pytest.raises(CommandError, match=sentence):
        call_command("verify_ledger", stdout=StringIO())


def test_a_head_that_was_noted_shows_a_ledger_that_was_rewritten_with_its_signals() -> None:
    signals = make_story()
    noted = LedgerHead.objects.get()
    make_published(stop_loss=Decimal("1.0820"))
    call_command("verify_ledger", "--head", str(noted), stdout=(out := StringIO()))
    assert out.getvalue().startswith("6 entries hold. Head: 6:")
    with unguarded():
        Signal.objects.filter(pk=signals[2].pk).update(stop_loss="1.083")
        rewrite_from(3)
    assert verify().fault == ""
    assert "was rewritten" in verify(NotedHead(noted.position, noted.hash)).fault


def test_demo_goes_with_an_entry_for_each_signal() -> None:
    make_tiers()
    user = make_user()
    Account.objects.filter(pk=make_account(user).pk).update(is_demo=True)
    mine, theirs = make_published(), make_published(user=user)
    remove_demo([user.pk])
    assert list(Signal.objects.all()) == [mine]
    assert LedgerEntry.objects.get(position=3).signal == theirs.pk
    assert verify().fault == ""


# The ledger names publishers by pseudonyms; that a name is taken is known all the same, at each sign-up.
def user_of(signal: Signal) -> str:
    payload = json.loads(LedgerEntry.objects.get(signal=signal.pk).payload)
    assert payload["user_id"] == signal.user_id
    return str(payload["user"])


def test_an_entry_tells_a_pseudonym_and_one_of_before_the_name() -> None:
    ada = make_user("ada")
    before, since = make_published_by_name(user=ada), make_published(user=ada)
    assert (user_of(before), user_of(since)) == ("ada", f"publisher-{ada.pk}")
    assert verify().fault == ""


@pytest.mark.parametrize("publish", [make_published, make_published_by_name])
def test_only_the_whole_name_counts_in_whatever_case(publish: Callable[..., Signal]) -> None:
    publish(user=make_user('o"Neil_1'))
    names = ('o"Neil_1', 'O"NEIL_1', 'o"neil', "Neil_1", 'o"NeilX1', "%")
    assert [name for name in names if is_taken(name, None)] == ['o"Neil_1', 'O"NEIL_1']


def test_a_name_is_held_once_however_often_it_publishes() -> None:
    ada = make_user("ada")
    for _ in range(2):
        make_published(user=ada)
    assert list(HeldName.objects.values_list("user", flat=True)) == [ada.pk]


def test_it_is_found_by_an_index() -> None:
    make_published()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            # A table as short as this one would be read whole.
            cursor.execute("SET LOCAL enable_seqscan = off")
    assert "ledger_published_name" in named_in_ledger("somebody").explain()


# Whether a signal's result holds is found out each time, not remembered.
ENDED_BID, ENDED_ASK = Decimal("1.0860"), Decimal("1.0861")


def make_closed(**terms: Any) -> Signal:
    signal = make_published(**terms)
    close_at(signal, ENDED_BID, ENDED_ASK)
    return Signal.objects.select_related("instrument").get(pk=signal.pk)


def check(signal: Signal) -> ResultCheck:
    return check_signals([Signal.objects.select_related("instrument").get(pk=signal.pk)])[signal.pk]


def test_closed_active_and_cancelled_signals_hold() -> None:
    cancelled = make_published()
    cancel(cancelled, reason="Wrong symbol", by="boss")
    signals = [make_closed(), make_published(), cancelled]
    assert [check(signal) for signal in signals] == [ResultCheck("", Mark.RECORDED)] * 3


@pytest.mark.parametrize("kind", ["publish", "close", "cancel"])
def test_missing_entry_is_named(kind: str) -> None:
    signal = make_published()
    cancel(signal, reason="Wrong symbol", by="boss")
    close_at(signal, BID, ASK, "cancelled")
    with unguarded():
        LedgerEntry.objects.filter(kind=kind).delete()
        found = check(signal)
    assert f"the ledger has no {kind} of it" in found.fault


def test_signal_that_the_ledger_never_heard_of_does_not_hold() -> None:
    assert check(make_signal(status="closed")).fault


def test_signal_without_evidence_of_its_exit_is_unproven() -> None:
    """As those are that are older than the evidence; here by a forger who rewrites the chain as well."""
    signal = make_closed()
    with unguarded():
        exits(signal).delete()
        rewrite_from(2, '"evidence":{.*?}', '"evidence":null')
        found = check(signal)
        Evidence.objects.all().delete()
        assert check(signal).mark == Mark.NOT_VERIFIED
    assert found == ResultCheck("", Mark.NOT_VERIFIED, NO_EVIDENCE)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("publish", {"tradable_price": "1.0843"}),
        ("publish", {"stop_loss": "1.0811"}),
        ("close", {"close_price": "1.0861"}),
        ("close", {"pnl": "18.1"}),
        ("close", {"pnl_r": "0.6"}),
        ("close", {"pnl_percent": "1"}),
        ("close", {"best_r": "0.6"}),
        # Its time is not over, nobody cancelled it, and its price is at no level.
        *(("close", {"close_reason": reason}) for reason in ("expired", "cancelled", "take_profit")),
    ],
)
def test_what_does_not_follow_from_the_evidence_is_seen(kind: str, changes: dict[str, str]) -> None:
    make_closed()
    record = [json.loads(entry.payload) for entry in LedgerEntry.objects.order_by("position")]
    assert contradictions(record) == []
    assert contradictions([each | changes if each["kind"] == kind else each for each in record])


def test_target_whose_tick_was_beyond_the_stop_is_seen() -> None:
    signal = make_published()
    at_ms = epoch_ms_after(signal.published_at) + 1_000
    below = Quoted(Decimal("1.0800"), Decimal("1.0801"), at_ms, "", 1)
    closing = Closing(signal.pk, signal.take_profit, "take_profit", at_ms, TARGET, "tick", below.shown)
    assert close_signal(closing)
    assert check(Signal.objects.get(pk=signal.pk)).fault


def test_result_is_checked_with_the_pip_size_that_it_was_computed_with() -> None:
    signal = make_closed()
    signal.instrument.pip_size *= 10
    signal.instrument.save()
    assert check(signal).fault == ""


def test_many_signals_cost_as_many_queries_as_one(django_assert_num_queries: Any) -> None:
    signals = [make_closed() for _ in range(3)]
    with django_assert_num_queries(5):
        assert {found.fault for found in check_signals(signals).values()} == {""}
