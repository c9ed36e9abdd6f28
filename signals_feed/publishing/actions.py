"""Publishing, closing and cancelling signals: each writes the fact, its evidence, its event and its ledger
entry in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.cache import cache
from django.db import IntegrityError, transaction
from django.db.models import F, Max, Window
from django.db.models.functions import Coalesce, Greatest, Lag, Least

from accounts.models import Account, User
from accounts.rights import MAY_PUBLISH
from core import clock
from core.database import database
from core.deadlines import patient
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.times import epoch_ms_after, moment
from instruments.catalogue import WITHHELD, catalogue, may_be_passed_on
from instruments.facts import REPLAY, InstrumentFacts
from instruments.models import Instrument, WithheldSource
from market import runtime as market
from market.engine import SeriesEnding
from market.models import Candle, LastQuote
from market.own_prices import ENDED_FOR, makes_price
from market.store import hold_series, present_kind, stored_sources
from signals_feed import exits
from signals_feed.closing import Closing, close_signal, close_signals
from signals_feed.decisions import BY_STAFF, cancel_fact
from signals_feed.exits import exit_price, result
from signals_feed.figures import gain_text, in_r, tone
from signals_feed.figures import price as price_text
from signals_feed.ledger.ledger import (
    Fact,
    LedgerEntry,
    cancellation_payload,
    database_clock,
    plain,
    publication_payload,
    published_names,
)
from signals_feed.ledger.names import NAME_IS_TAKEN, HeldName, is_taken, looks_like_another
from signals_feed.ledger.new_rules import begin_when_known, have_begun
from signals_feed.models import LIFETIME, Announcement, Evidence, Signal
from signals_feed.record import RULES
from signals_feed.result_checks import close_requested
from signals_feed.rules import Quoted, SeenExtremes, SignalRefused, SignalTerms, check, exact_price

from ..publishers.purses import JUMP_IN_UNITS, JUMPS_OF_DAYS

# The unit of `rank_r`, from the minutes that are stored of an instrument.
# What is known for less time may never have shown how it jumps.
KNOWN_FOR = timedelta(days=90)
STEP = Decimal("0.00000001")


def rank_unit_of_hour(instrument_id: int, at: datetime) -> Decimal | None:
    """It reads half a million minutes, so not for each of those who publish at once."""
    key = f"rank-unit-{instrument_id}-{at:%Y%m%d%H}"
    unit: Decimal | None = cache.get_or_set(key, lambda: rank_unit(instrument_id, at), timeout=3600)
    return unit


def rank_unit(instrument_id: int, at: datetime) -> Decimal | None:
    """None for an instrument whose minutes do not go back far enough: its signals are not ranked."""
    minutes = Candle.objects.filter(
        instrument=instrument_id,
        simulated=present_kind(instrument_id),
        timeframe="1m",
        opened_at__gte=at - timedelta(days=JUMPS_OF_DAYS),
        opened_at__lt=at,
    ).order_by()
    if not minutes.filter(opened_at__lte=at - KNOWN_FOR).exists():
        return None
    # No tick moves the price further than its minute does from the last price before it.
    before = Coalesce(Window(Lag("close"), order_by="opened_at"), F("open"))
    moves = minutes.annotate(move=Greatest("high", before) - Least("low", before))
    largest = Decimal(moves.aggregate(largest=Max("move"))["largest"])
    return (largest / JUMP_IN_UNITS).quantize(STEP, ROUND_HALF_UP)


NOT_TRADED = {
    "closed": "The market of {symbol} is closed. You can publish and close signals once it opens.",
    "stale": "The quote of {symbol} is too old to trade on. Try again once a new price arrives.",
    "lagging": "The prices of {symbol} come more than 10 seconds late. Try again once they come in time.",
    "unsettled": "The price of {symbol} may be about to jump. Try again in a few seconds.",
}
# The ledger takes no publication that is dated longer ago than 5 seconds.
SOON = timedelta(seconds=4)
# A request that waits for a slower one keeps a thread of all pages.
WAITING_S = 3.0
REPLAYED = (
    "The prices of {symbol} are those of another time and may be known already: only the demo publishes."
)
REPRICED = "The prices of {symbol} now come from another source. Try again once the first one arrives."


class SignalNotActive(Exception):
    """The signal was closed before."""


def publish(terms: SignalTerms, publisher: User, quote: Quoted | None, token: UUID | None = None) -> Signal:
    """Put a new signal into the feed, or raise SignalRefused. A form that is sent twice, by its token, is one
    signal."""
    if not publisher.has_perm(MAY_PUBLISH):
        raise SignalRefused("", f"{publisher} may not publish signals. Staff can grant the permission.")
    if first := _sent_before(terms, publisher, token):
        return first
    facts = catalogue.find(terms.symbol)
    if facts is None:
        raise SignalRefused("symbol", f"No instrument {terms.symbol[:20]} is traded here.")
    if facts.is_withheld:
        raise SignalRefused("symbol", WITHHELD.format(symbol=facts.symbol))
    if REPLAY in market.feeds(facts) and not _is_demo(publisher):
        raise SignalRefused("symbol", REPLAYED.format(symbol=facts.symbol), "replayed")
    quote = _tradable(facts, quote, market.own_ms(facts.symbol), "symbol")
    if market.is_lagging(facts.symbol):
        raise SignalRefused("symbol", NOT_TRADED["lagging"].format(symbol=facts.symbol), "lagging")
    prices = check(terms, quote, facts.digits)
    return _publish(terms, prices, publisher, facts, quote, token)


def _publish(
    terms: SignalTerms,
    prices: tuple[Decimal, Decimal],
    publisher: User,
    facts: InstrumentFacts,
    quote: Quoted,
    token: UUID | None,
) -> Signal:
    while True:
        has_begun = begin_when_known()
        # The clock may have been set back: a signal is never older than its quote.
        at = published_now() if has_begun else moment(max(clock.now_ms(), quote.time_ms))
        signal = _made(terms, prices, publisher, facts, at, has_begun=has_begun)
        signal.token = token
        try:
            with transaction.atomic():
                _check_under_locks(publisher, facts, quote, at)
                enter_feed(signal, quote)
                # Under the lock of the event: no signal by earlier rules follows one by these.
                is_outrun = have_begun() and not has_begun
                transaction.set_rollback(is_outrun)
        except IntegrityError:
            # The same form was sent at the same moment, and the other request was first.
            if first := _sent_before(terms, publisher, token):
                return first
            # It may have waited so long that the ledger refuses its time.
            if not has_begun or published_now() - at < SOON:
                raise
        else:
            if not is_outrun:
                return signal


def _made(
    terms: SignalTerms,
    prices: tuple[Decimal, Decimal],
    publisher: User,
    facts: InstrumentFacts,
    at: datetime,
    *,
    has_begun: bool,
) -> Signal:
    entry, tradable = prices
    signal = Signal(
        user=publisher,
        instrument=Instrument.objects.get(pk=facts.id),
        direction=terms.direction,
        entry=entry,
        stop_loss=terms.stop_loss,
        take_profit=terms.take_profit,
        tradable_price=tradable,
        published_at=at,
        expires_at=at + LIFETIME,
    )
    if has_begun:
        signal.rules = RULES
        if (unit := rank_unit_of_hour(facts.id, at)) is not None:
            signal.rank_unit = unit
    return signal


@transaction.atomic
def enter_feed(signal: Signal, quote: Quoted) -> None:
    """Publish the signal with the quote at which it was made."""
    # Before the check, so that of two who begin at once the second sees the first.
    HeldName.objects.hold(signal.user.username, signal.user_id)
    if looks_like_another(signal.user):
        raise SignalRefused("", NAME_IS_TAKEN)
    signal.is_demo = _is_demo(signal.user)
    signal.save(force_insert=True)
    entry = Evidence.objects.create(
        signal=signal,
        kind=Evidence.Kind.ENTRY,
        source=Evidence.Source.TICK,
        rule=exits.QUOTE,
        **quote.shown,
    )
    event = ControlEvent.objects.publish(
        EventKind.SIGNAL_PUBLISHED, by=signal.user.get_username(), signal=str(signal.pk)
    )
    # After the event, but this row locks nothing that the transaction does not hold already.
    Announcement.objects.create(position=event.position, signal=signal, kind=Announcement.Kind.PUBLISHED)
    # Under the lock of the event, so that no two are the same.
    number = Signal.objects.filter(user=signal.user_id).count()
    kept = {"number": number, "demo": signal.is_demo} | _measures(signal)
    payload = publication_payload(signal, entry) | published_names(signal) | kept
    LedgerEntry.objects.append([Fact(LedgerEntry.Kind.PUBLISH, signal.pk, payload)])


def _measures(signal: Signal) -> dict[str, object]:
    """What the judge goes by, whatever staff change later."""
    if signal.rules != RULES:
        return {}
    measures = {"pip_size": plain(signal.instrument.pip_size), "rank_unit": plain(signal.rank_unit)}
    return {"rules": RULES, "stale_ms": signal.instrument.stale_after_s * 1000, **measures}


def published_now() -> datetime:
    """By the clock that all processes have in common, and the ledger goes by."""
    return datetime.fromisoformat(database_clock())


def close_by_hand(signal: Signal, *, by: User, quote: Quoted | None) -> None:
    """Its publisher closes it, even if they may no longer publish: by rules 1 at the current price of the
    exit side, by the present ones at the first tick that the engine then finds due."""
    if signal.user_id != by.pk:
        raise SignalRefused("", "Only its publisher can close a signal by hand.")
    if signal.rules == RULES:
        request_close(signal, by=by)
        return
    facts = catalogue.known(signal.instrument.symbol)
    if facts is None or not facts.active:
        raise SignalRefused(
            "", f"{signal.instrument.symbol} is no longer traded here; staff can cancel the signal."
        )
    if facts.is_withheld:
        raise SignalRefused("", WITHHELD.format(symbol=facts.symbol))
    now_ms = clock.now_ms()
    quote = _tradable(facts, quote, market.own_ms(facts.symbol))
    if not close_signal(Closing.at_current(signal, Signal.CloseReason.MANUAL, quote, now_ms)):
        raise SignalNotActive("This signal has already been closed.")


def request_close(signal: Signal, *, by: User) -> None:
    """It cannot be taken back, and a second one is the same."""
    kind, entries = LedgerEntry.Kind.CLOSE_REQUEST, LedgerEntry.objects.filter(signal=signal.pk)
    if not Signal.objects.active().filter(pk=signal.pk).exists():
        raise SignalNotActive("This signal has already been closed.")
    try:
        with transaction.atomic():
            ControlEvent.objects.publish(
                EventKind.CLOSE_REQUESTED, by=by.get_username(), signal=str(signal.pk)
            )
            if entries.filter(kind=LedgerEntry.Kind.CLOSE).exists():
                raise SignalNotActive("This signal has already been closed.")
            if not entries.filter(kind=kind).exists():
                LedgerEntry.objects.append([Fact(kind, signal.pk, {"at": database_clock()})])
    except IntegrityError:
        if not entries.filter(kind=kind).exists():
            raise


@transaction.atomic
def cancel(signal: Signal, *, reason: str, by: str) -> None:
    """Staff take a signal back: it closes at the next tradable price, and its result counts."""
    if not reason.strip():
        raise ValueError("A cancellation needs a written reason.")
    own = Signal.objects.active().filter(pk=signal.pk, cancel_reason="")
    if not own.select_for_update(no_key=True):
        raise SignalNotActive("This signal has already been closed or cancelled.")
    # It may wait for its turn for longer than the ledger lets it be dated back.
    ControlEvent.objects.take_turn()
    # The market's time, because it ends at the market's next price; by the present rules its arm has that.
    at = published_now() if signal.rules == RULES else moment(clock.now_ms())
    signal.cancel_reason, signal.cancelled_at = reason.strip(), max(at, signal.published_at)
    own.update(cancel_reason=signal.cancel_reason, cancelled_at=signal.cancelled_at)
    ControlEvent.objects.publish(
        EventKind.SIGNAL_CANCELLED, by=by, signal=str(signal.pk), reason=signal.cancel_reason
    )
    # The ledger is public; only the event names the member of staff.
    old = Fact(LedgerEntry.Kind.CANCEL, signal.pk, cancellation_payload(signal))
    LedgerEntry.objects.append([cancel_fact(signal, BY_STAFF) if signal.rules == RULES else old])


@transaction.atomic
def remove_demo(publishers: list[int]) -> None:
    """Remove the demo's signals and record it in the ledger; the database refuses to remove any others. The
    names are free again."""
    signals = Signal.objects.filter(user__in=publishers)
    ControlEvent.objects.publish(EventKind.SIGNALS_REMOVED, by="demo")
    LedgerEntry.objects.append(
        [
            Fact(LedgerEntry.Kind.REMOVE, pk, {})
            for pk in signals.order_by("published_at", "pk").values_list("pk", flat=True)
        ]
    )
    signals.delete()
    HeldName.objects.filter(user__in=publishers).delete()


def is_free_for_demo(name: str) -> bool:
    """What an earlier demo held is; not what looks like the name of a real publisher."""
    HeldName.objects.release(name)
    return not is_taken(name, None)


def _is_demo(publisher: User) -> bool:
    return Account.objects.filter(user=publisher, is_demo=True).exists()


def _tradable(facts: InstrumentFacts, quote: Quoted | None, now_ms: int, field: str = "") -> Quoted:
    """The quote, unless the market is closed, its prices are unsettled, or the quote is stale; it also is
    stale when the engine is silent, as others may know a newer price then."""
    if not facts.hours.is_open(now_ms):
        state = "closed"
    elif quote is None or now_ms - quote.time_ms > facts.stale_after_s * 1000 or not market.is_heard():
        state = "stale"
    elif market.is_unsettled(facts.symbol):
        state = "unsettled"
    else:
        return quote
    raise SignalRefused(field, NOT_TRADED[state].format(symbol=facts.symbol), state)


def _sent_before(terms: SignalTerms, publisher: User, token: UUID | None) -> Signal | None:
    """The signal of this form, if it was sent before. Sent again with other terms, it is refused."""
    sent = Signal.objects.filter(user=publisher, token=token).select_related("instrument")
    first = None if token is None else sent.first()
    if first is None:
        return None
    published = SignalTerms(
        first.instrument.symbol, first.direction, first.stop_loss, first.take_profit, first.entry
    )
    if terms not in (published, published._replace(entry=None)):
        raise SignalRefused(
            "",
            f"This form has already published a {first.direction} of {first.instrument.symbol}, whose terms "
            "cannot change. To publish another signal, open the page again.",
        )
    return first


TOO_MANY = (
    "You published {most} signals within a minute, which is the limit. Wait a minute, then publish this one."
)
OWN_PRICE = (
    "You can make the price of {symbol}, by an ingest key or as staff, or could within the last {days} days. "
    "Publishers cannot publish signals on prices of their own."
)
TOO_MANY_ACTIVE = "{most} of your signals are active, which is the limit. Close one, or wait until one ends."


def _check_under_locks(publisher: User, facts: InstrumentFacts, quote: Quoted, at: datetime) -> None:
    """Until the transaction ends, other requests of the publisher wait, and the prices stay of one kind."""
    database().wait_for_others(patient(WAITING_S))
    # Staff may have renamed them since the request began.
    publisher.username = User.objects.select_for_update(no_key=True).get(pk=publisher.pk).username
    own = Signal.objects.filter(user=publisher)
    most = settings.PUBLICATIONS_PER_MINUTE
    if most and own.filter(published_at__gt=at - timedelta(minutes=1)).count() >= most:
        raise SignalRefused("", TOO_MANY.format(most=most))
    if makes_price(publisher, facts.symbol):
        raise SignalRefused("symbol", OWN_PRICE.format(symbol=facts.symbol, days=ENDED_FOR.days), "own_price")
    most = settings.ACTIVE_SIGNALS_PER_PUBLISHER
    if most and own.active().count() >= most:
        raise SignalRefused("", TOO_MANY_ACTIVE.format(most=most))
    # The prices may have changed from simulated to real since the quote, or back.
    began = hold_series(facts.id)
    if quote.time_ms < began.since_ms and not _is_numbered_after(quote, began.after_seq):
        raise SignalRefused("symbol", REPRICED.format(symbol=facts.symbol))


def _is_numbered_after(quote: Quoted, seq: int | None) -> bool:
    return seq is not None and quote.seq > seq and quote.epoch == market.epoch_written()


def current_quote(symbol: str) -> Quoted | None:
    """This process's last quote; a command has none and reads the engine's last checkpoint."""
    epoch, quote = market.epoch(), market.quote(symbol)
    if quote is not None:
        return Quoted(exact_price(quote.bid), exact_price(quote.ask), quote.time_ms, epoch, quote.seq)
    row = LastQuote.objects.select_related("instrument").filter(instrument__symbol=symbol).first()
    if row is None or row.bid is None or row.ask is None or row.quoted_at is None:
        return None
    bid, ask = (round(price, row.instrument.digits) for price in (row.bid, row.ask))
    return Quoted(bid, ask, epoch_ms_after(row.quoted_at), market.epoch_written(), row.seq)


SERIES_ENDED = (
    "Its prices came from {source} and come from {next_source} now: simulated and real ones do not mix."
)

AT_PUBLICATION = " They may not be passed on: it closes at those of its publication."


@transaction.atomic
def end_signals(ending: SeriesEnding, hits: Sequence[Closing], epoch: str) -> None:
    """Of the signals by rules 1, close those that a tick has hit by that tick, and cancel all others at the
    last quote. If neither may be passed on, cancel all at the quote of their publication, which is public."""
    own = Signal.objects.active().filter(instrument__symbol=ending.symbol, rules=1)
    may_be_shown = may_last_be_shown(ending)
    if may_be_shown:
        close_signals([hit for hit in hits if own.filter(pk=hit.signal).exists()])
    signals = list(own.select_related("instrument"))
    reason = reason_of(ending)
    if not may_be_shown:
        reason += AT_PUBLICATION
    for signal in signals:
        if not signal.cancel_reason:
            cancel(signal, reason=reason[:200], by="market")
    at_ms = clock.now_ms()
    cancelled = Signal.CloseReason.CANCELLED
    quote_of = partial(_last_quote, ending, epoch) if may_be_shown else _entry_quote
    closings = [Closing.at_current(signal, cancelled, quote_of(signal), at_ms) for signal in signals]
    if not may_be_shown:
        closings = [each._replace(seen=SeenExtremes(each.price, each.price, 0)) for each in closings]
    close_signals(closings)


def reason_of(ending: SeriesEnding) -> str:
    return SERIES_ENDED.format(next_source=ending.next_source, source=ending.source)


def may_last_be_shown(ending: SeriesEnding) -> bool:
    """The prices of the old series, whatever is known of the new one."""
    facts = catalogue.known(ending.symbol)
    stored = () if facts is None else stored_sources(facts.id)
    withheld = list(WithheldSource.objects.values_list("name", flat=True))
    return may_be_passed_on((ending.source, *stored), withheld)


def _last_quote(ending: SeriesEnding, epoch: str, signal: Signal) -> Quoted:
    """The last quote of the series; if unknown, the one at publication, which belongs to it too."""
    last = ending.last
    if last is None:
        return _entry_quote(signal)
    digits = signal.instrument.digits
    bid, ask = (exact_price(round(each, digits)) for each in (last.bid, last.ask))
    return Quoted(bid, ask, last.time_ms, epoch, ending.seq)


def _entry_quote(signal: Signal) -> Quoted:
    unknown = Quoted(signal.tradable_price, signal.tradable_price, epoch_ms_after(signal.published_at))
    return signal.entry_quote() or unknown


# A publisher's active signals, for themselves: what each would give if it were closed now.
def active_signals(user: User) -> list[tuple[Signal, dict[str, Any]]]:
    own = Signal.objects.active().filter(user=user).for_feed().select_related("instrument")
    signals = list(own)
    asked = close_requested([signal.pk for signal in signals if signal.rules > 1])
    return [(signal, result_now(signal) | state_of(signal, asked)) for signal in signals]


def state_of(signal: Signal, to_close: Collection[UUID]) -> dict[str, Any]:
    """In words, with the look of its badge; the fill unless it was filled as it was published."""
    if signal.cancel_reason:
        state, badge = "being cancelled", "rolled"
    elif signal.pk in to_close:
        state, badge = "asked to close", "rolled"
    else:
        state, badge = ("waiting for its fill", "") if signal.waits_for_fill else ("active", "active")
    shown = {"state": state, "badge": badge}
    if signal.rules == 1:
        return shown
    price = signal.fill_price
    return shown | {"fill": "waiting" if price is None else price_text(price, signal.instrument.digits)}


def result_now(signal: Signal) -> dict[str, Any]:
    """The result of closing it now; empty without a fill or a quote, or if that may not be shown."""
    facts = catalogue.find(signal.instrument.symbol)
    quote = current_quote(signal.instrument.symbol)
    if signal.paid is None or quote is None or facts is None or not facts.is_offered:
        return {}
    price = exit_price(signal.direction, quote.bid, quote.ask)
    # Of entry and fill it is the worse already.
    terms = signal.entry, signal.stop_loss, signal.paid
    earned = result(signal.direction, *terms, price, signal.instrument.pip_size)
    return {
        "price": price_text(price, signal.instrument.digits),
        "gain": gain_text(signal.instrument, earned.pnl, earned.pnl_percent),
        "r": in_r(earned.pnl_r),
        "tone": tone(earned.pnl_r),
    }
