"""A server that is killed with its engine, again and again: each signal closes once, by the tick that would
have closed it if nobody had been killed, because a source sends again what was not written."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from accounts.models import Account
from core.times import moment
from instruments.models import Instrument
from market.prices.records import Tick
from signals_feed.ledger.ledger import LedgerEntry
from signals_feed.ledger.verify import verify
from signals_feed.models import Signal
from tests.factories import make_account
from tests.patience import PATIENCE_S
from tests.reliability.conftest import Tell
from tests.reliability.services.engines import Publisher, make_publisher, send_until_killed, settle
from tests.reliability.services.processes import Installation
from tests.signals_feed.published_signals import put_in_feed

SIGNALS = 300
SYMBOL, START = "WATCHED", 108_000
pytestmark = pytest.mark.row("5", "every signal closes as it would have without a kill, and only once")


class End(NamedTuple):
    reason: str
    price: Decimal


Ends = dict[UUID, End | None]


def points(value: int) -> Decimal:
    return Decimal(value).scaleb(-5)


def publish(publisher: Publisher, draw: random.Random) -> list[Signal]:
    """Levels at all distances, so that some are hit in each life of the server."""
    # Only signals of the demo are dated back, and no server removes them once the account is not the demo's.
    instrument, account = Instrument.objects.get(symbol=SYMBOL), make_account(is_demo=True)
    begins = moment(publisher.at_ms) - timedelta(minutes=1)
    made = []
    for _ in range(SIGNALS):
        direction = draw.choice(("buy", "sell"))
        sign = 1 if direction == "buy" else -1
        terms: dict[str, Any] = {"entry": points(START), "tradable_price": points(START)}
        terms["stop_loss"] = points(START - sign * draw.randint(5, 1_500))
        terms["take_profit"] = points(START + sign * draw.randint(5, 1_500))
        terms |= {"direction": direction, "published_at": begins}
        signal = Signal(instrument=instrument, user=account.user, **terms)
        made.append(put_in_feed(signal, points(START), points(START)))
    Account.objects.update(is_demo=False)
    return made


def reckoned(signal: Signal, ticks: Sequence[Tick]) -> End | None:
    """The contract's rules, tick by tick."""
    stop, target = float(signal.stop_loss), float(signal.take_profit)
    for tick in ticks:
        if signal.direction == "buy":
            if tick.bid <= stop:
                return End("stop_loss", Decimal(str(tick.bid)))
            if tick.bid >= target:
                return End("take_profit", signal.take_profit)
        else:
            if tick.ask >= stop:
                return End("stop_loss", Decimal(str(tick.ask)))
            if tick.ask <= target:
                return End("take_profit", signal.take_profit)
    return None


def ends(signals: Sequence[Signal]) -> Ends:
    rows = Signal.objects.in_bulk([signal.pk for signal in signals])
    return {
        pk: End(row.close_reason, row.close_price) if row.close_price is not None else None
        for pk, row in rows.items()
    }


def test_each_signal_closes_once_and_at_the_same_tick_as_without_a_kill(
    embedded: Installation, tell: Tell, seed: int
) -> None:
    kill_again_and_again(embedded, tell, seed, rounds=1)


def kill_again_and_again(embedded: Installation, tell: Tell, seed: int, rounds: int) -> None:
    publisher, draw = make_publisher(embedded, SYMBOL, seed), random.Random(seed)  # noqa: S311
    with embedded.orm():
        signals = publish(publisher, draw)
    for _ in range(rounds):
        with embedded.serve(1) as (server,):
            publisher.recover(server.url)
            send_until_killed(publisher, server, draw)
    with embedded.serve(1) as (server,):
        publisher.recover(server.url)
        settle(embedded, SYMBOL, publisher.ticks)
        wanted = {signal.pk: reckoned(signal, publisher.ticks) for signal in signals}
        found = wait_for(embedded, signals, wanted)
    with embedded.orm():
        closures = LedgerEntry.objects.filter(kind="close").count()
        whole = verify()
    closed = sum(end is not None for end in wanted.values())
    otherwise = {str(pk): (found[pk], end) for pk, end in wanted.items() if found[pk] != end}
    told = f"{rounds} kills, {len(publisher.ticks)} ticks: {closed} of {SIGNALS} closed"
    tell(f"{told}; closed differently: {len(otherwise)}")
    assert closed > 0
    assert otherwise == {}
    assert (closures, whole.fault) == (closed, "")
    # The control: had every second tick been missed, it would show.
    assert any(reckoned(signal, publisher.ticks[::2]) != wanted[signal.pk] for signal in signals)


def wait_for(installation: Installation, signals: Sequence[Signal], wanted: Ends) -> Ends:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with installation.orm():
            found = ends(signals)
        if found == wanted or time.monotonic() > deadline:
            return found
        time.sleep(0.1)
