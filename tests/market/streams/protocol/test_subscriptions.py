from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from market.streams.protocol.messages import StreamRefused, Subscribe, Unsubscribe
from market.streams.protocol.subscriptions import Rejected, SubscriptionChange, Subscriptions

KNOWN = {"EURUSD", "GBPUSD", "XAUUSD"}


@pytest.fixture
def subscribed() -> Subscriptions:
    return Subscriptions()


def subscribe(subscribed: Subscriptions, *symbols: str, **more: Any) -> SubscriptionChange:
    return subscribed.subscribe(Subscribe(symbols=list(symbols) or UNSET, **more), KNOWN.__contains__)


def unsubscribe(subscribed: Subscriptions, *symbols: str) -> SubscriptionChange:
    return subscribed.unsubscribe(Unsubscribe(symbols=list(symbols) or UNSET))


def test_subscriptions_add_up_sorted_and_are_left_one_by_one(subscribed: Subscriptions) -> None:
    assert subscribe(subscribed, "XAUUSD", "eurusd") == SubscriptionChange(["EURUSD", "XAUUSD"])
    again = subscribe(subscribed, "EurUsd", "GBPUSD", "GBPUSD")
    assert again == SubscriptionChange(["GBPUSD"])
    assert (again.brings("GBPUSD"), again.brings("EURUSD")) == (True, False)
    assert subscribed.symbols == ["EURUSD", "GBPUSD", "XAUUSD"]

    assert unsubscribe(subscribed, "gbpusd", "NOPE") == SubscriptionChange(left=["GBPUSD"])
    assert subscribed.symbols == ["EURUSD", "XAUUSD"]
    assert unsubscribe(subscribed) == SubscriptionChange(left=["EURUSD", "XAUUSD"])
    assert unsubscribe(subscribed) == unsubscribe(subscribed, "EURUSD") == SubscriptionChange()


def test_unknown_symbols_are_rejected_as_they_were_written(subscribed: Subscriptions) -> None:
    change = subscribe(subscribed, "NOPE", "EURUSD", "", "nope", "NOPE", "EUR USD", "\x00", "xauuſd")

    assert change.joined == ["EURUSD"]
    assert [found.symbol for found in change.rejected] == ["NOPE", "", "nope", "EUR USD", "\x00", "xauuſd"]
    assert {found.code for found in change.rejected} == {"symbol_not_found"}


def test_no_symbols_and_a_star_mean_all_in_place_of_single_ones(subscribed: Subscriptions) -> None:
    assert subscribe(Subscriptions()) == SubscriptionChange(["*"])
    subscribe(subscribed, "EURUSD")
    change = subscribe(subscribed, "GBPUSD", "*", "NOPE")
    assert change == SubscriptionChange(["*"], ["EURUSD"], [Rejected("NOPE")])
    assert (change.brings("GBPUSD"), change.brings("EURUSD")) == (True, False)
    assert subscribe(subscribed, "EURUSD", "NOPE") == SubscriptionChange(rejected=[Rejected("NOPE")])
    assert subscribe(subscribed) == SubscriptionChange()
    assert (subscribed.symbols, subscribed.has_all, subscribed.covers("LATER")) == (["*"], True, True)

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
