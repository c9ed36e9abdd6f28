"""Signals that go into the feed and leave it as the service does it."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from unittest.mock import patch

from django.contrib.auth.models import Permission
from django.utils import timezone

from accounts.models import User
from core.times import epoch_ms_after
from instruments.models import Instrument
from signals_feed.closing import Closing, close_signal
from signals_feed.models import Evidence, Signal
from signals_feed.publishing.actions import enter_feed
from signals_feed.rules import Quoted
from tests.factories import NOON, make_account, make_instrument, make_signal, make_user, vouch_for

BID, ASK = Decimal("1.0841"), Decimal("1.0842")
TERMS = {"entry": "1.0842", "stop_loss": "1.0810", "take_profit": "1.0900", "tradable_price": "1.0842"}
SELL: dict[str, Any] = {
    "direction": "sell",
    "entry": Decimal("1.0841"),
    "stop_loss": Decimal("1.0870"),
    "take_profit": Decimal("1.0800"),
    "tradable_price": Decimal("1.0841"),
}


def make_publisher(name: str = "anna") -> User:
    user = make_user(name)
    user.user_permissions.add(Permission.objects.get(codename="publish_signal"))
    return User.objects.get(pk=user.pk)


def put_in_feed(signal: Signal, bid: Decimal = BID, ask: Decimal = ASK, seq: int = 0) -> Signal:
    enter_feed(signal, Quoted(bid, ask, epoch_ms_after(signal.published_at), "", seq))
    return signal


def make_published(instrument: Instrument | None = None, **terms: Any) -> Signal:
    """A buy of EURUSD, or whatever the terms make of it, with everything that belongs to a publication."""
    instrument = instrument or Instrument.objects.filter(symbol="EURUSD").first() or make_instrument()
    fields: dict[str, Any] = {name: Decimal(price) for name, price in TERMS.items()}
    fields |= {"direction": "buy", "user": terms.pop("user", None) or make_user()} | terms
    return put_in_feed(Signal(instrument=instrument, **fields))


def make_waiting(**terms: Any) -> Signal:
    """The same by rules 2: it waits for its fill. It is the demo's, which may be dated as the test's clock
    is and not as the database's."""
    user = terms.pop("user", None) or make_account(is_demo=True).user
    instrument = terms.pop("instrument", None) or Instrument.objects.get(symbol="EURUSD")
    return make_published(instrument, user=user, rules=2, **terms)


def make_published_by_name(**terms: Any) -> Signal:
    """As version 0.1.0 did it, which told the ledger the username and held no name elsewhere."""

    def names(signal: Signal) -> dict[str, str]:
        return {"user": signal.user.username, "symbol": signal.instrument.symbol}

    with (
        patch("signals_feed.publishing.actions.published_names", names),
        patch("signals_feed.publishing.actions.HeldName"),
    ):
        return make_published(**terms)


def close_at(
    signal: Signal, bid: Decimal, ask: Decimal, reason: str = "manual", at: datetime | None = None
) -> bool:
    at_ms = epoch_ms_after(at or timezone.now())
    return close_signal(Closing.at_current(signal, reason, Quoted(bid, ask, at_ms), at_ms))


def make_filled(
    user: User, *, minute: float = 0, feed: str = "kraken", exit_feed: str | None = None, **terms: Any
) -> Signal:
    """A buy by rules 2 that risks 0.0032 and was filled at its entry; closed if it has a `close_price`."""
    at = NOON + timedelta(minutes=minute)
    filled: dict[str, Any] = {"rules": 2, "rank_unit": Decimal("0.0032"), "fill_price": ASK, "filled_at": at}
    if "close_price" in terms:
        filled |= {"status": "closed", "closed_at": at + timedelta(seconds=30), "close_reason": "manual"}
    signal = make_signal(user=user, published_at=at, **(filled | terms))
    kinds = {"fill": feed} | ({"exit": exit_feed or feed} if "close_price" in terms else {})
    for kind, seen in kinds.items():
        Evidence.objects.create(
            signal=signal, kind=kind, source="tick", rule="quote", at=at, bid=BID, ask=ASK, feed=seen
        )
    return vouch_for(signal)


def make_lucky(name: str, won: int = 0, lost: int = 0, *, minute: float = 0, **terms: Any) -> User:
    """So many episodes of 1.8125 R, and then so many of -1 R, one a minute."""
    user = make_publisher(name)
    for number in range(won + lost):
        price = Decimal(TERMS["take_profit" if number < won else "stop_loss"])
        make_filled(user, minute=minute + number, close_price=price, **terms)
    return user
