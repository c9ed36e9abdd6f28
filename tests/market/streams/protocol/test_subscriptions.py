from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from market.streams.protocol.messages import Subscribe, Unsubscribe
from market.streams.protocol.refusals import StreamRefused
from market.streams.protocol.subscriptions import Rejected, SubscriptionChange, Subscriptions

KNOWN = {"EURUSD", "GBPUSD", "XAUUSD"}


@pytest.fixture
def subscribed() -> Subscriptions:
    return Subscriptions()


def subscribe(subscribed: Subscriptions, *symbols: str, **more: Any) -> SubscriptionChange:
    return subscribed.subscribe(Subscribe(symbols=list(symbols) or UNSET, **more), KNOWN.__contains__)


def unsubscribe(subscribed: Subscriptions, *symbols: str) -> SubscriptionChange:
    return subscribed.unsubscribe(Unsubscribe(symbols=list(symbols) or UNSET))


def test_subscriptions_add_up_sorted(subscribed: Subscriptions) -> None:
    assert subscribe(subscribed, "XAUUSD", "EURUSD") == SubscriptionChange(["EURUSD", "XAUUSD"])
    assert subscribe(subscribed, "GBPUSD") == SubscriptionChange(["GBPUSD"])
    assert subscribed.symbols == ["EURUSD", "GBPUSD", "XAUUSD"]


def test_repeating_one_is_harmless(subscribed: Subscriptions) -> None:
    subscribe(subscribed, "EURUSD")

    assert subscribe(subscribed, "EURUSD", "EURUSD", "GBPUSD") == SubscriptionChange(["GBPUSD"])


def test_unknown_symbols_are_rejected_as_they_were_written(subscribed: Subscriptions) -> None:
    change = subscribe(subscribed, "NOPE", "EURUSD", "", "nope", "NOPE", "EUR USD", "\x00", "xauuſd")

    assert change.joined == ["EURUSD"]
    assert [found.symbol for found in change.rejected] == ["NOPE", "", "nope", "EUR USD", "\x00", "xauuſd"]
    assert {found.code for found in change.rejected} == {"symbol_not_found"}


def test_all_may_be_unknown(subscribed: Subscriptions) -> None:
    assert subscribe(subscribed, "NOPE") == SubscriptionChange(rejected=[Rejected("NOPE")])
    assert subscribed.symbols == []


def test_case_does_not_matter(subscribed: Subscriptions) -> None:
    assert subscribe(subscribed, "eurusd", "EurUsd") == SubscriptionChange(["EURUSD"])
    assert unsubscribe(subscribed, "eurusd") == SubscriptionChange(left=["EURUSD"])


def test_no_symbols_and_a_star_mean_all(subscribed: Subscriptions) -> None:
    assert subscribe(subscribed) == SubscriptionChange(["*"])
    assert subscribe(Subscriptions(), "*") == SubscriptionChange(["*"])
    assert subscribed.symbols == ["*"]
    assert subscribed.has_all
    assert subscribed.covers("LATER")


def test_all_stays_all(subscribed: Subscriptions) -> None:
    subscribe(subscribed, "*")

    assert subscribe(subscribed, "EURUSD", "NOPE") == SubscriptionChange(rejected=[Rejected("NOPE")])
    assert subscribe(subscribed) == SubscriptionChange()
    assert subscribed.symbols == ["*"]


def test_all_takes_the_place_of_single_ones(subscribed: Subscriptions) -> None:
    subscribe(subscribed, "EURUSD")

    assert subscribe(subscribed, "GBPUSD", "*", "NOPE") == SubscriptionChange(
        ["*"], ["EURUSD"], [Rejected("NOPE")]
    )
    assert subscribed.symbols == ["*"]


def test_change_brings_what_did_not_come_before(subscribed: Subscriptions) -> None:
    assert subscribe(subscribed, "EURUSD").brings("EURUSD")
    assert not subscribe(subscribed, "EURUSD").brings("EURUSD")
    change = subscribe(subscribed, "*")
    assert (change.brings("GBPUSD"), change.brings("EURUSD")) == (True, False)


def test_unsubscribing_leaves_the_others(subscribed: Subscriptions) -> None:
    subscribe(subscribed, "EURUSD", "GBPUSD", "XAUUSD")

    assert unsubscribe(subscribed, "GBPUSD", "NOPE") == SubscriptionChange(left=["GBPUSD"])
    assert subscribed.symbols == ["EURUSD", "XAUUSD"]
    assert unsubscribe(subscribed) == SubscriptionChange(left=["EURUSD", "XAUUSD"])
    assert subscribed.symbols == []


def test_unsubscribing_nothing_is_harmless(subscribed: Subscriptions) -> None:
    assert unsubscribe(subscribed) == unsubscribe(subscribed, "EURUSD") == SubscriptionChange()


def test_all_is_left_as_a_whole(subscribed: Subscriptions) -> None:
    subscribe(subscribed, "*")

    with pytest.raises(StreamRefused, match="all symbols"):
        unsubscribe(subscribed, "EURUSD")
    assert subscribed.symbols == ["*"]
    assert unsubscribe(subscribed, "*") == SubscriptionChange(left=["*"])
    assert not subscribed.covers("EURUSD")


def test_features_and_events_add_up(subscribed: Subscriptions) -> None:
    subscribe(subscribed, "EURUSD", features=frozenset({"seq"}), events=frozenset({"signal.closed"}))
    subscribe(subscribed, "GBPUSD", features=frozenset({"lag"}))
    unsubscribe(subscribed)

    assert subscribed.features == {"seq", "lag"}
    assert subscribed.events == {"signal.closed"}
