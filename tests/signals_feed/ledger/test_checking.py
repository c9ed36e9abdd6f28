"""Whether a signal's result holds is found out each time, not remembered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest

from signals_feed.ledger.checking import ResultCheck, check_signals
from signals_feed.ledger.guards import put_up_triggers, take_down_triggers
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.ledger.proof import disagreement
from signals_feed.models import Evidence, Signal
from signals_feed.publishing.actions import cancel
from tests.factories import make_signal
from tests.signals_feed.published_signals import ASK, BID, close_at, make_published

pytestmark = [pytest.mark.django_db, pytest.mark.services]
ENDED_BID, ENDED_ASK = Decimal("1.0860"), Decimal("1.0861")


@contextmanager
def unguarded() -> Iterator[None]:
    """As somebody does who may do everything with the database."""
    take_down_triggers()
    yield
    put_up_triggers()


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
    assert [check(signal) for signal in signals] == [ResultCheck("", has_evidence=True)] * 3
    assert check(signals[0]).state == "verified"


ALTERED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "its result": (Signal, {"pnl": "99.0"}, "pnl is 99"),
    "its stop": (Signal, {"stop_loss": "1.0700"}, "stop_loss is 1.07"),
    "its evidence": (Evidence, {"bid": "1.0800"}, "evidence is"),
    "the ledger": (LedgerEntry, {"payload": "{}"}, "its hash is not that of its payload"),
}


@pytest.mark.parametrize(("model", "changes", "words"), ALTERED.values(), ids=ALTERED)
def test_what_was_altered_is_named(model: Any, changes: dict[str, Any], words: str) -> None:
    signal = make_closed()
    with unguarded():
        model.objects.update(**changes)
        found = check(signal)
    assert found.state == "altered"
    assert words in found.fault


@pytest.mark.parametrize("kind", ["publish", "close", "cancel"])
def test_missing_entry_is_named(kind: str) -> None:
    signal = make_published()
    cancel(signal, reason="Wrong symbol", by="boss")
    close_at(signal, BID, ASK, "cancelled")
    with unguarded():
        LedgerEntry.objects.filter(kind=kind).delete()
        found = check(signal)
    assert found.fault == f"The ledger has no {kind} of signal {signal.pk}."


def test_signal_that_the_ledger_never_heard_of_does_not_hold() -> None:
    assert check(make_signal(status="closed")).state == "altered"


def test_signal_older_than_the_evidence_is_unproven() -> None:
    """As the migration of the past leaves them: in the ledger, without a tick."""
    signal = make_closed()
    assert ResultCheck("", has_evidence=False).state == "unproven"
    with unguarded():
        Evidence.objects.all().delete()
        assert check(signal).has_evidence is False


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tradable_price": Decimal("1.0843")}, "the price at entry"),
        ({"close_price": Decimal("1.0861")}, "the price at exit"),
        ({"pnl": Decimal("18.1")}, "the result"),
        ({"pnl_r": Decimal("0.6")}, "the result"),
        ({"pnl_percent": Decimal("1")}, "the result"),
    ],
)
def test_what_does_not_follow_from_the_evidence_is_seen(changes: dict[str, Decimal], words: str) -> None:
    signal = make_closed()
    entry, exit_ = (Evidence.objects.get(signal=signal, kind=kind) for kind in Evidence.Kind)
    pip_size = signal.instrument.pip_size
    assert disagreement(signal, entry, exit_, pip_size) == ""
    for name, value in changes.items():
        setattr(signal, name, value)
    assert words in disagreement(signal, entry, exit_, pip_size)


def test_result_is_checked_with_the_pip_size_that_it_was_computed_with() -> None:
    signal = make_closed()
    signal.instrument.pip_size *= 10
    signal.instrument.save()
    assert check(signal).state == "verified"


def test_many_signals_cost_as_many_queries_as_one(django_assert_num_queries: Any) -> None:
    signals = [make_closed() for _ in range(3)]
    with django_assert_num_queries(4):
        assert {found.state for found in check_signals(signals).values()} == {"verified"}
