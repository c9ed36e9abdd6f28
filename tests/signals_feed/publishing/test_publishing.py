"""The checks of a publication: nobody gets a price that the market did not offer."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any
from uuid import UUID

import pytest
import time_machine
from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command

from accounts.models import User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from instruments.catalogue import catalogue
from instruments.models import Instrument, WithheldSource
from market.prices.records import Tick
from market.runtime import market
from market.store import checkpoints
from signals_feed.models import Announcement, Signal
from signals_feed.publishing.actions import SignalNotActive, close_by_hand, publish
from signals_feed.rules import Quoted, SignalRefused, SignalTerms
from tests.factories import NOON, make_calendar, make_instrument, make_user
from tests.market.ticking import NOON_MS

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("clock", "own_market"),
    pytest.mark.services,
    pytest.mark.pooled,
]
QUOTE = Quoted(Decimal("1.0841"), Decimal("1.0843"), NOON_MS, "e1", 7)
BUY = SignalTerms("EURUSD", "buy", Decimal("1.0810"), Decimal("1.0900"), Decimal("1.0843"))
SELL = SignalTerms("EURUSD", "sell", Decimal("1.0870"), Decimal("1.0800"), Decimal("1.0841"))


@pytest.fixture(autouse=True)
def instrument(db: None) -> Instrument:
    """It closes at 12:30."""
    return make_instrument(calendar=make_calendar("lunch", "Mon-Fri 13:30-12:30"))


@pytest.fixture
def anna(db: None) -> User:
    user = make_user("anna")
    user.user_permissions.add(Permission.objects.get(codename="publish_signal"))
    return user


def terms(of: SignalTerms = BUY, **changes: Any) -> SignalTerms:
    """With other words, or other prices."""
    words = ("symbol", "direction")
    wanted: dict[str, Any] = {name: to if name in words else Decimal(to) for name, to in changes.items()}
    return of._replace(**wanted)


@pytest.mark.parametrize(("of", "tradable"), [(BUY, "1.0843"), (SELL, "1.0841")], ids=["buy", "sell"])
def test_signal_at_the_market_is_published_with_its_quote(anna: User, of: SignalTerms, tradable: str) -> None:
    signal = publish(of, anna, QUOTE)

    signal.refresh_from_db()
    entry = signal.evidence.get()
    assert (signal.status, signal.tradable_price) == ("active", Decimal(tradable))
    assert (signal.published_at, signal.expires_at) == (NOON, NOON + timedelta(days=7))
    assert (entry.kind, entry.bid, entry.ask, entry.epoch, entry.seq) == (
        "entry",
        QUOTE.bid,
        QUOTE.ask,
        "e1",
        7,
    )


def test_it_is_told_with_it(anna: User) -> None:
    signal = publish(BUY, anna, QUOTE)

    told = Announcement.objects.get(signal=signal)
    assert ControlEvent.objects.get(position=told.position).kind == EventKind.SIGNAL_PUBLISHED


def test_without_an_entry_it_is_published_at_the_market(anna: User) -> None:
    assert publish(BUY._replace(entry=None), anna, QUOTE).entry == Decimal("1.0843")


@pytest.mark.parametrize(
    ("asked", "field", "sentence"),
    [
        (terms(entry="1.08429"), "entry", "below the ask, which is 1.0843"),
        (terms(SELL, entry="1.08411"), "entry", "above the bid, which is 1.0841"),
        (terms(entry="1.09515", take_profit="1.2"), "entry", "more than 1% away"),
        (terms(SELL, entry="1.07325", take_profit="1.05"), "entry", "more than 1% away"),
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


@pytest.mark.parametrize("entry", ["1.0843", "1.09514"])
def test_worse_than_the_market_by_up_to_a_hundredth_is_taken(anna: User, entry: str) -> None:
    signal = publish(terms(entry=entry, take_profit="1.2"), anna, QUOTE)

    assert (signal.entry, signal.tradable_price) == (Decimal(entry), Decimal("1.0843"))


@pytest.mark.parametrize(
    ("minutes", "age_ms", "sentence"),
    [(31, 0, "is closed"), (0, 60_001, "too old"), (0, None, "too old")],
    ids=["closed", "stale", "never quoted"],
)
@pytest.mark.parametrize("act", ["publish", "close"])
def test_without_a_market_nothing_is_published_or_closed_by_hand(
    clock: time_machine.Traveller, anna: User, act: str, minutes: int, age_ms: int | None, sentence: str
) -> None:
    signal = publish(BUY, anna, QUOTE)
    clock.move_to(NOON + timedelta(minutes=minutes))
    now_ms = NOON_MS + minutes * 60_000
    quote = None if age_ms is None else QUOTE._replace(time_ms=now_ms - age_ms)

    with pytest.raises(SignalRefused, match=sentence):
        publish(BUY, anna, quote) if act == "publish" else close_by_hand(signal, by=anna, quote=quote)


@pytest.mark.parametrize("act", ["publish", "close"])
def test_nobody_trades_at_the_last_price_of_an_engine_that_is_not_heard(
    monkeypatch: pytest.MonkeyPatch, anna: User, act: str
) -> None:
    """It is young enough yet, but whoever looks elsewhere knows a newer one."""
    signal = publish(BUY, anna, QUOTE)
    monkeypatch.setattr(market.liveness, "is_heard", False)

    with pytest.raises(SignalRefused, match="too old"):
        publish(BUY, anna, QUOTE) if act == "publish" else close_by_hand(signal, by=anna, quote=QUOTE)


def test_nobody_publishes_without_the_permission() -> None:
    with pytest.raises(SignalRefused, match="Staff can grant the permission"):
        publish(BUY, make_user(), QUOTE)


def test_instrument_that_is_not_offered_takes_no_signal(anna: User) -> None:
    Instrument.objects.update(active=False)
    catalogue.load_now()

    with pytest.raises(SignalRefused, match="No instrument EURUSD"):
        publish(BUY, anna, QUOTE)


@pytest.mark.parametrize("act", ["publish", "close"])
def test_nothing_is_published_or_closed_by_hand_at_prices_that_may_not_be_handed_on(
    anna: User, act: str
) -> None:
    signal = publish(BUY, anna, QUOTE)
    WithheldSource.objects.create(name="push", why="Its terms.")
    catalogue.load_now()

    with pytest.raises(SignalRefused, match="terms of its source"):
        publish(BUY, anna, QUOTE) if act == "publish" else close_by_hand(signal, by=anna, quote=QUOTE)


def test_the_same_token_is_one_signal(anna: User) -> None:
    token = UUID(int=5)

    assert publish(BUY, anna, QUOTE, token) == publish(BUY, anna, QUOTE, token)
    assert Signal.objects.count() == 1


@pytest.mark.parametrize("changes", [{"stop_loss": "1.0800"}, {"entry": "1.0845"}])
def test_the_same_token_with_other_terms_is_not_taken_for_the_first_signal(
    anna: User, changes: dict[str, Any]
) -> None:
    token = UUID(int=5)
    publish(BUY, anna, QUOTE, token)

    with pytest.raises(SignalRefused, match="already published a buy of EURUSD"):
        publish(terms(**changes), anna, QUOTE, token)

    assert Signal.objects.get().stop_loss == BUY.stop_loss


def test_the_same_token_at_the_market_is_one_signal_wherever_the_market_went(anna: User) -> None:
    token, at_market = UUID(int=5), BUY._replace(entry=None)

    first = publish(at_market, anna, QUOTE, token)

    assert publish(at_market, anna, QUOTE._replace(ask=Decimal("1.0850")), token) == first


def test_its_publisher_closes_it_at_the_exit_side(anna: User) -> None:
    signal = publish(BUY, anna, QUOTE)

    close_by_hand(signal, by=anna, quote=QUOTE._replace(bid=Decimal("1.0850"), ask=Decimal("1.0852")))

    signal.refresh_from_db()
    assert (signal.close_reason, signal.close_price, signal.pnl) == ("manual", Decimal("1.0850"), Decimal(7))
    assert signal.evidence.get(kind="exit").rule == "current"


def test_nobody_else_closes_it(anna: User) -> None:
    signal, other = publish(BUY, anna, QUOTE), make_user()
    other.user_permissions.add(Permission.objects.get(codename="publish_signal"))

    with pytest.raises(SignalRefused, match="Only its publisher"):
        close_by_hand(signal, by=other, quote=QUOTE)


def test_it_is_closed_by_hand_once(anna: User) -> None:
    signal = publish(BUY, anna, QUOTE)
    close_by_hand(signal, by=anna, quote=QUOTE)

    with pytest.raises(SignalNotActive):
        close_by_hand(signal, by=anna, quote=QUOTE)


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
