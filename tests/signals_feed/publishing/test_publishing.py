"""The checks of a publication: nobody gets a price that the market did not offer."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from io import StringIO
from threading import Barrier
from typing import Any
from uuid import UUID

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection

from accounts.models import Account, User
from core.version import known_rules
from instruments.catalogue import catalogue
from instruments.models import Instrument, WithheldSource
from market import runtime
from market.prices.quotes import Quote
from market.prices.records import Tick
from market.runtime import market
from market.store import checkpoints
from signals_feed.contradictions import WRITTEN_WITHIN_MS
from signals_feed.ledger.ledger import LedgerEntry, database_clock, seconds_between
from signals_feed.ledger.verify import verify
from signals_feed.models import RulesBegun, Signal
from signals_feed.publishing.actions import SignalNotActive, close_by_hand, publish
from signals_feed.record import FIELDS
from signals_feed.rules import FARTHEST, Quoted, SignalRefused, SignalTerms
from tests.factories import NOON, make_account, make_calendar, make_candle, make_instrument, make_user
from tests.market.engine_status import tell, untold  # noqa: F401 - a fixture
from tests.market.ticking import NOON_MS
from tests.signals_feed.published_signals import make_publisher

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("clock", "own_market"),
    pytest.mark.services,
    pytest.mark.pooled,
]
QUOTE = Quoted(Decimal("1.0841"), Decimal("1.0843"), NOON_MS, "e1", 7)
BUY = SignalTerms("EURUSD", "buy", Decimal("1.0810"), Decimal("1.0900"), Decimal("1.0843"))
AT_ONCE, HOUR_MS = 8, 3_600_000
Trade = Callable[[Quoted | None], object]
SELL = SignalTerms("EURUSD", "sell", Decimal("1.0870"), Decimal("1.0800"), Decimal("1.0841"))


@pytest.fixture(autouse=True)
def instrument(db: None) -> Instrument:
    """It closes at 12:30."""
    return make_instrument(calendar=make_calendar("lunch", "Mon-Fri 13:30-12:30"))


@pytest.fixture
def anna(db: None) -> User:
    return make_publisher()


@pytest.fixture(params=["publish", "close"])
def trade(request: pytest.FixtureRequest, anna: User) -> Trade:
    """At a quote: a publication, or a closure by hand of what was published before."""
    signal = publish(BUY, anna, QUOTE)
    if request.param == "publish":
        return partial(publish, BUY, anna)
    return lambda quote: close_by_hand(signal, by=anna, quote=quote)


def terms(of: SignalTerms = BUY, **changes: Any) -> SignalTerms:
    """With other words, or other prices."""
    words = ("symbol", "direction")
    wanted: dict[str, Any] = {name: to if name in words else Decimal(to) for name, to in changes.items()}
    return of._replace(**wanted)


@pytest.mark.parametrize(
    ("of", "tradable"),
    [(BUY, "1.0843"), (SELL, "1.0841"), (BUY._replace(entry=None), "1.0843")],
    ids=["buy", "sell", "without an entry"],
)
def test_signal_at_the_market_is_published_with_its_quote(anna: User, of: SignalTerms, tradable: str) -> None:
    signal = publish(of, anna, QUOTE)
    signal.refresh_from_db()
    entry = signal.evidence.get()
    assert (signal.status, signal.entry, signal.tradable_price) == ("active", *[Decimal(tradable)] * 2)
    assert (signal.published_at, signal.expires_at) == (NOON, NOON + timedelta(days=7))
    assert (entry.kind, entry.bid, entry.ask) == ("entry", QUOTE.bid, QUOTE.ask)
    assert (entry.epoch, entry.seq) == ("e1", 7)


@pytest.mark.usefixtures("untold")
@pytest.mark.parametrize("code", ["unsettled", "lagging"])
def test_nobody_publishes_what_may_have_another_price_by_now(anna: User, code: str) -> None:
    told: dict[str, Any] = {code: ("EURUSD",)}
    tell(**told)
    with pytest.raises(SignalRefused) as refused:
        publish(BUY, anna, QUOTE)
    assert (refused.value.code, refused.value.field) == (code, "symbol")
    told[code] = ("GBPUSD",)
    tell(**told)
    assert publish(BUY, anna, QUOTE).status == "active"


@pytest.mark.parametrize("ahead_ms", [HOUR_MS, -4 * HOUR_MS])
def test_quote_is_as_old_as_its_venue_s_clock_says(anna: User, ahead_ms: int) -> None:
    at_ms = NOON_MS - ahead_ms
    runtime.prices.quotes["EURUSD"] = Quote("EURUSD", 1.0841, 1.0843, 0.0002, at_ms, 7, ahead_ms)
    assert publish(BUY, anna, QUOTE._replace(time_ms=at_ms)).status == "active"
    with pytest.raises(SignalRefused) as refused:
        publish(BUY, anna, QUOTE._replace(time_ms=at_ms - 61_000))
    assert refused.value.code == "stale"


def test_only_the_demo_publishes_on_a_replay_of_which_everybody_may_know_the_rest(anna: User) -> None:
    Instrument.objects.update(source="replay")
    catalogue.load_now()
    with pytest.raises(SignalRefused) as refused:
        publish(BUY, anna, QUOTE)
    assert refused.value.code == "replayed"
    make_account(anna)
    Account.objects.update(is_demo=True)
    assert publish(BUY, anna, QUOTE).is_demo


@pytest.mark.parametrize(
    ("asked", "field", "sentence"),
    [
        (terms(entry="1.08429"), "entry", "below the ask, which is 1.0843"),
        (terms(SELL, entry="1.08411"), "entry", "above the bid, which is 1.0841"),
        (terms(entry="1.09515", take_profit="1.2"), "entry", f"more than {FARTHEST:.0%} away"),
        (terms(SELL, entry="1.07325", take_profit="1.05"), "entry", f"more than {FARTHEST:.0%} away"),
        (terms(stop_loss="1.0843"), "stop_loss", "must be below the entry"),
        (terms(stop_loss="1.0850"), "stop_loss", "must be below the entry"),
        (terms(stop_loss="1.0842"), "stop_loss", "reached at once"),
        (terms(stop_loss="1.0841"), "stop_loss", "reached at once"),
        (terms(SELL, stop_loss="1.0841"), "stop_loss", "must be above the entry"),
        (terms(SELL, stop_loss="1.0843"), "stop_loss", "reached at once"),
        (terms(take_profit="1.0843"), "take_profit", "must be above the entry"),
        (terms(SELL, take_profit="1.0841"), "take_profit", "must be below the entry"),
        (terms(take_profit="0"), "take_profit", "above 0"),
        (terms(stop_loss="-1"), "stop_loss", "above 0"),
        (terms(stop_loss="NaN"), "stop_loss", "above 0"),
        (terms(take_profit="Infinity"), "take_profit", "above 0"),
        (terms(take_profit="1e10"), "take_profit", "above 0"),
        (terms(take_profit="1.090001"), "take_profit", "5 decimals"),
        (terms(direction="hold"), "direction", "buy or sell"),
        (terms(symbol="NOPE"), "symbol", "No instrument NOPE"),
    ],
)
def test_what_is_refused_says_which_field_and_why(
    anna: User, asked: SignalTerms, field: str, sentence: str
) -> None:
    with pytest.raises(SignalRefused, match=sentence) as refused:
        publish(asked, anna, QUOTE)
    assert refused.value.field == field
    assert not Signal.objects.exists()


def test_worse_than_the_market_is_taken(anna: User) -> None:
    signal = publish(terms(entry="1.09514", take_profit="1.2"), anna, QUOTE)
    assert (signal.entry, signal.tradable_price) == (Decimal("1.09514"), Decimal("1.0843"))


@pytest.mark.parametrize(
    ("minutes", "age_ms", "sentence"),
    [(31, 0, "is closed"), (0, 60_001, "too old"), (0, None, "too old")],
    ids=["closed", "stale", "never quoted"],
)
def test_without_a_market_nothing_is_published_or_closed_by_hand(
    clock: time_machine.Traveller, trade: Trade, minutes: int, age_ms: int | None, sentence: str
) -> None:
    clock.move_to(NOON + timedelta(minutes=minutes))
    now_ms = NOON_MS + minutes * 60_000
    with pytest.raises(SignalRefused, match=sentence):
        trade(None if age_ms is None else QUOTE._replace(time_ms=now_ms - age_ms))


def test_nobody_trades_at_the_last_price_of_an_engine_that_is_not_heard(
    monkeypatch: pytest.MonkeyPatch, trade: Trade
) -> None:
    monkeypatch.setattr(market.liveness, "is_heard", False)
    with pytest.raises(SignalRefused, match="too old"):
        trade(QUOTE)


# How much one publisher may publish.
def test_so_many_a_minute_and_no_more(anna: User, settings: Any) -> None:
    settings.PUBLICATIONS_PER_MINUTE = 2
    for _ in range(2):
        publish(BUY, anna, QUOTE)
    with pytest.raises(SignalRefused, match="2 signals within a minute, which is the limit. Wait a minute"):
        publish(BUY, anna, QUOTE)
    assert publish(BUY, make_publisher("ben"), QUOTE).status == "active"
    with time_machine.travel(NOON + timedelta(seconds=60), tick=False):
        assert publish(BUY, anna, QUOTE._replace(time_ms=NOON_MS + 60_000)).status == "active"


def test_clock_that_was_set_back_locks_nobody_out(anna: User, settings: Any) -> None:
    settings.PUBLICATIONS_PER_MINUTE = 2
    ahead_ms = NOON_MS + 300_000
    published = [publish(BUY, anna, QUOTE._replace(time_ms=ahead_ms)) for _ in range(2)]
    with pytest.raises(SignalRefused, match="Wait a minute"):
        publish(BUY, anna, QUOTE._replace(time_ms=ahead_ms + 59_000))
    published.append(publish(BUY, anna, QUOTE._replace(time_ms=ahead_ms + 60_000)))
    assert [(each.published_at - NOON).seconds for each in published] == [300, 300, 360]


def test_so_many_active_and_no_more(anna: User, settings: Any) -> None:
    settings.ACTIVE_SIGNALS_PER_PUBLISHER = 3
    for _ in range(3):
        publish(BUY, anna, QUOTE)
    with pytest.raises(SignalRefused, match="3 of your signals are active, which is the limit. Close one"):
        publish(BUY, anna, QUOTE)


def test_nought_is_no_limit(anna: User, settings: Any) -> None:
    settings.PUBLICATIONS_PER_MINUTE = settings.ACTIVE_SIGNALS_PER_PUBLISHER = 0
    for _ in range(12):
        publish(BUY, anna, QUOTE)
    assert Signal.objects.filter(user=anna).count() == 12


@pytest.mark.django_db(transaction=True)
def test_all_at_once_are_as_many_as_one_after_the_other(settings: Any) -> None:
    settings.PUBLICATIONS_PER_MINUTE = 3
    anna, barrier = make_publisher(), Barrier(AT_ONCE)

    def send(_: int) -> bool:
        barrier.wait()
        try:
            publish(BUY, anna, QUOTE)
        except SignalRefused:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert sum(pool.map(send, range(AT_ONCE))) == 3
    assert Signal.objects.filter(user=anna).count() == 3


def test_without_the_permission_or_the_instrument_nothing_is_published(anna: User) -> None:
    with pytest.raises(SignalRefused, match="Staff can grant the permission"):
        publish(BUY, make_user(), QUOTE)
    Instrument.objects.update(active=False)
    catalogue.load_now()
    with pytest.raises(SignalRefused, match="No instrument EURUSD"):
        publish(BUY, anna, QUOTE)


def test_nobody_trades_at_prices_that_may_not_be_handed_on(trade: Trade) -> None:
    WithheldSource.objects.create(name="push", why="Its terms.")
    catalogue.load_now()
    with pytest.raises(SignalRefused, match="terms of its source"):
        trade(QUOTE)


@pytest.mark.parametrize("changes", [{"stop_loss": "1.0800"}, {"entry": "1.0845"}])
def test_the_same_token_is_one_signal_and_of_no_other_terms(anna: User, changes: dict[str, Any]) -> None:
    token = UUID(int=5)
    assert publish(BUY, anna, QUOTE, token) == publish(BUY, anna, QUOTE, token)
    with pytest.raises(SignalRefused, match="already published a buy of EURUSD"):
        publish(terms(**changes), anna, QUOTE, token)
    assert Signal.objects.get().stop_loss == BUY.stop_loss


def test_the_same_token_at_the_market_is_one_signal_wherever_the_market_went(anna: User) -> None:
    token, at_market = UUID(int=5), BUY._replace(entry=None)
    first = publish(at_market, anna, QUOTE, token)
    assert publish(at_market, anna, QUOTE._replace(ask=Decimal("1.0850")), token) == first


def test_its_publisher_alone_closes_it_once_at_the_exit_side(anna: User) -> None:
    signal = publish(BUY, anna, QUOTE)
    later = QUOTE._replace(bid=Decimal("1.0850"), ask=Decimal("1.0852"))
    with pytest.raises(SignalRefused, match="Only its publisher"):
        close_by_hand(signal, by=make_publisher("ben"), quote=later)
    close_by_hand(signal, by=anna, quote=later)
    signal.refresh_from_db()
    assert (signal.close_reason, signal.close_price, signal.pnl) == ("manual", Decimal("1.0850"), Decimal(7))
    assert signal.evidence.get(kind="exit").rule == "current"
    with pytest.raises(SignalNotActive):
        close_by_hand(signal, by=anna, quote=later)


def told(*arguments: str) -> str:
    call_command("publish_signal", *arguments, stdout=(out := StringIO()))
    return out.getvalue()


LEVELS = ("--stop", "1.081", "--target", "1.09")


def test_command_publishes_at_the_last_checkpoint(anna: User, instrument: Instrument) -> None:
    checkpoints.write_quote(instrument.pk, Tick("EURUSD", 1.0841, 1.0843, NOON_MS))
    line = told("anna", "eurusd", "buy", *LEVELS)
    signal: Any = Signal.objects.get()
    assert line == f"Published {signal.pk}: buy EURUSD at 1.08430, stop 1.08100, target 1.09000.\n"


@pytest.mark.parametrize(("who", "sentence"), [("anna", "too old"), ("nobody", "There is no user nobody")])
def test_command_says_why_not(anna: User, who: str, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        told(who, "EURUSD", "buy", *LEVELS)


@pytest.mark.parametrize("stop", ["nan", "abc", "inf"])
def test_command_takes_prices_only(stop: str) -> None:
    with pytest.raises(CommandError, match="is not a price"):
        told("anna", "EURUSD", "buy", "--stop", stop, "--target", "1")


@pytest.mark.parametrize(("days", "unit"), [(91, "0.001"), (80, None)])
def test_once_rules_2_have_begun_a_publication_says_what_the_judge_goes_by(
    anna: User, instrument: Instrument, days: int, unit: str | None
) -> None:
    RulesBegun.objects.create(rules=2)
    today = datetime.fromisoformat(database_clock())
    for ago, high in ((days, "1.0804"), (1, "1.0820")):
        make_candle(instrument, opened_at=today - timedelta(days=ago), high=Decimal(high))
    signal = publish(BUY, anna, QUOTE)
    payload = json.loads(LedgerEntry.objects.get().payload)
    assert set(FIELDS["publish"]) <= payload.keys()
    assert (payload["rules"], payload["stale_ms"], payload["pip_size"]) == (2, 60_000, "0.0001")
    # Half of what the price jumped by, if that is known of long enough.
    assert payload["rank_unit"] == unit
    # The clock of the database, and not that of the test.
    assert seconds_between(payload["published_at"], payload["written"]) <= WRITTEN_WITHIN_MS / 1_000
    assert (signal.rules, signal.filled_at) == (2, None)


def test_publication_that_waits_while_rules_2_begin_follows_them(
    anna: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told_just_before_they_begin() -> int:
        RulesBegun.objects.create(rules=2)
        return 1

    monkeypatch.setattr(known_rules, "asked", [told_just_before_they_begin])
    assert publish(BUY, anna, QUOTE).rules == 2
    assert verify()[::2] == (1, "")


def test_request_to_close_is_written_once_whatever_the_market_is_doing(anna: User) -> None:
    RulesBegun.objects.create(rules=2)
    signal = publish(BUY, anna, QUOTE)
    for _ in range(2):
        close_by_hand(signal, by=anna, quote=None)
    kinds = LedgerEntry.objects.order_by("position").values_list("kind", flat=True)
    assert list(kinds) == ["publish", "close_request"]
