"""Loads the demo and removes it again: its instruments, its news and its signals."""

import csv
import random
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import cycle, islice
from operator import itemgetter
from typing import NamedTuple

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.models import Account, User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.times import MINUTE_MS, epoch_ms, moment
from instruments.catalogue import catalogue
from instruments.facts import TEST_SYMBOL, InstrumentFacts
from instruments.models import Instrument, TradingCalendar
from instruments.saving import SHIPPED, save
from market.models import UnfinishedPast
from market.prices import TIMEFRAMES, PriceBar, interval_start
from market.store import read_minutes_since
from news.calibration import open_outcomes
from news.entering import announce
from news.models import ItemScore, NewsItem, Source
from news.scoring import built_in_model, score_by
from signals_feed.closing import Closing, close_signal
from signals_feed.exits import SignalLevels, by_minute, exit_price
from signals_feed.models import LIFETIME, Signal, SignalQuerySet
from signals_feed.publishing import enter_feed, remove_demo
from signals_feed.rules import Quoted, SeenExtremes, StoredMinute

from .market import Progress, priced_by_demo, remove_market, seed_recent, simulated_since
from .past import LOOK_S, announce_makers, claim, make_pasts
from .people import PUBLISHERS, hold_demo, seed_people

# The instruments of the demo: those that are shipped, and one that clients can test with.
TEST_NAME = "Test instrument"
ALWAYS_OPEN = "always-open"


def seed_instruments(progress: Progress) -> None:
    if not Instrument.objects.exists():
        progress("Loading the instruments")
        call_command("load_instruments", verbosity=0)
    if Instrument.objects.filter(symbol=TEST_SYMBOL).exists():
        return
    calendar, _ = TradingCalendar.objects.get_or_create(name=ALWAYS_OPEN, defaults={"sessions": "24/7"})
    test = Instrument(
        symbol=TEST_SYMBOL,
        name=TEST_NAME,
        type=Instrument.Type.CRYPTO,
        calendar=calendar,
        pip_size=Decimal("0.01"),
        contract_size=1,
        margin_rate=Decimal("0.5"),
        min_lot=1,
        max_lot=1_000,
        digits=2,
        volume_kind=Instrument.VolumeKind.TRADED,
        order_flow_source=Instrument.OrderFlowSource.TRADES,
    )
    save(test, by="demo")


def brought() -> QuerySet[Instrument]:
    """Those that the demo may have added. Older demos gave the test instrument a longer name."""
    shipped = Q(symbol__in=_shipped("instruments", "symbol"))
    return Instrument.objects.filter(shipped | Q(symbol=TEST_SYMBOL, name__startswith=TEST_NAME))


def brought_calendars() -> QuerySet[TradingCalendar]:
    return TradingCalendar.objects.filter(name__in=[*_shipped("calendars", "name"), ALWAYS_OPEN])


def _shipped(table: str, column: str) -> list[str]:
    with (SHIPPED / f"{table}.csv").open() as rows:
        return [row[column] for row in csv.DictReader(rows)]


# Headlines that were written for the demo. The model that is shipped scores them.
Headline = tuple[str, str, str]

# Category, symbols, title.
HEADLINES = (
    ("forex", "EURUSD", "Euro climbs to a three-week high as German factory orders rebound"),
    ("forex", "GBPUSD", "Sterling slides after services growth stalls for a second month"),
    ("forex", "USDJPY", "Yen little changed as traders wait for the Bank of Japan's minutes"),
    ("forex", "AUDUSD", "Australian dollar eases after iron ore drops below its October low"),
    ("forex", "USDCAD", "Canadian dollar firms with oil and a stronger jobs report"),
    ("forex", "USDCHF", "Franc gives back gains as demand for havens fades"),
    ("forex", "NZDUSD", "Kiwi rallies after dairy prices rise for a fourth auction in a row"),
    ("forex", "EURGBP", "Euro-sterling holds its narrowest weekly range of the year"),
    ("forex", "EURUSD", "Euro falls as inflation in the bloc undershoots every forecast"),
    ("forex", "GBPUSD", "Pound edges up as wage growth keeps rate cuts in doubt"),
    ("gold", "XAUUSD", "Gold sets a record close as central banks keep buying"),
    ("gold", "XAUUSD", "Gold retreats from its peak while real yields turn higher"),
    ("gold", "XAGUSD", "Silver outpaces gold on solar demand"),
    ("gold", "XAUUSD", "Bullion steady ahead of the payrolls report"),
    ("gold", "XAUUSD", "Funds trim gold holdings for the first time in nine weeks"),
    ("gold", "XAUUSD", "Jewellery buying before the wedding season lifts gold premiums in Mumbai"),
    ("gold", "XAGUSD", "Silver tumbles as factory surveys weaken across Asia"),
    ("gold", "XAUUSD", "Safe-haven flows return to gold after talks break down"),
    ("crypto", "BTCUSD", "Bitcoin jumps after funds record their largest weekly inflow since spring"),
    ("crypto", "ETHUSD", "Ether sinks as a bridge exploit drains a lending protocol"),
    ("crypto", "BTCUSD", "Bitcoin trades sideways while miners upgrade their fleets"),
    ("crypto", "ETHUSD", "Ether gains as network fees fall to a yearly low"),
    ("crypto", "BTCUSD", "Bitcoin slips as an exchange delays withdrawals for maintenance"),
    ("crypto", "BTCUSD,ETHUSD", "Pension fund discloses its first digital-asset allocation"),
    ("crypto", "ETHUSD", "Developers postpone the next Ethereum upgrade by a quarter"),
    ("crypto", "BTCUSD", "Options expiry passes without a move in bitcoin"),
    ("macro", "US500", "Inflation cools more than expected, keeping rate cuts on the table"),
    ("macro", "US500,US30", "Jobless claims jump to their highest level in two years"),
    ("macro", "", "Central bank leaves rates unchanged, as every economist had forecast"),
    ("macro", "US500", "Retail sales beat estimates before the holiday season"),
    ("macro", "GER40", "German industrial output shrinks for a third month"),
    ("macro", "UK100", "British GDP revised up on stronger business investment"),
    ("macro", "WTI", "Oil inventories swell as refinery runs slow"),
    ("macro", "US500", "Credit spreads widen to a one-year high after a surprise default"),
    ("macro", "US500,US100", "Factory survey returns to growth for the first time since March"),
    ("macro", "", "Treasury keeps auction sizes steady for the coming quarter"),
)
DRAFTS = (
    ("forex", "EURUSD", "Euro seen firmer if this week's surveys confirm the rebound"),
    ("gold", "XAUUSD", "Refiners in Switzerland report longer delivery times for gold bars"),
    ("crypto", "BTCUSD", "Regulator opens a consultation on leverage in crypto products"),
)

# They are public, but are polled only after staff resume them: the demo needs no network.
SOURCES = (
    ("Federal Reserve", "https://www.federalreserve.gov/feeds/press_monetary.xml", "macro"),
    ("European Central Bank", "https://www.ecb.europa.eu/rss/press.html", "macro"),
)


def lacks_news() -> bool:
    return not NewsItem.objects.filter(is_demo=True).exists()


@transaction.atomic
def seed_news(now_ms: int, progress: Progress) -> None:
    if not (hold_demo() and lacks_news()):
        return
    progress("Adding news")
    Source.objects.bulk_create(
        (
            Source(name=name, address=address, category=category, is_active=False, is_demo=True)
            for name, address, category in SOURCES
        ),
        ignore_conflicts=True,
    )
    ids = {facts.symbol: facts.id for facts in catalogue.all()}
    now = moment(now_ms)
    # A step that shares no divisor with their number mixes the categories.
    mixed = [HEADLINES[i * 7 % len(HEADLINES)] for i in range(len(HEADLINES))]
    items = [
        _add_story(
            headline, now - timedelta(minutes=11 + 97 * number), ids, is_draft=number >= len(HEADLINES)
        )
        for number, headline in enumerate((*mixed, *DRAFTS))
    ]
    announce([item for item in reversed(items) if item.status == NewsItem.Status.PUBLISHED], by="demo")


def _add_story(headline: Headline, at: datetime, ids: dict[str, int], *, is_draft: bool) -> NewsItem:
    """It arrives when it is published, so that the market's past shows what its score was worth."""
    category, symbols, title = headline
    scored = score_by(built_in_model, title, category)
    item = NewsItem.objects.create(
        title=title,
        category=category,
        source="Tickwire Demo",
        summary=f"{title}. A made-up story of the demo market.",
        status=NewsItem.Status.DRAFT if is_draft else NewsItem.Status.PUBLISHED,
        sentiment_score=None if scored is None else scored.score,
        model="" if scored is None else scored.model,
        published_at=at,
        arrived_at=at,
        is_demo=True,
    )
    item.symbols.set(ids[symbol] for symbol in symbols.split(",") if symbol in ids)
    if scored is not None:
        ItemScore.objects.create(item=item, title=title, scored_at=at, **scored._asdict())
    if not is_draft:
        open_outcomes([item], at)
    return item


# Signals of the demo's publishers, closed by the minutes of its market as the service closes them after an
# outage.
PAST_SIGNALS, ACTIVE_SIGNALS = 110, 12
# Of eleven signals, in the order of the publishers' names: two of them have enough to be ranked.
SHARES = (4, 4, 2, 1)
MOST_MINUTES = 8 * 24 * 60


class Planned(NamedTuple):
    """A signal with the quote it is published at, and how it ends if it does."""

    signal: Signal
    quote: Quoted
    closing: Closing | None


def seed_signals(now_ms: int, progress: Progress) -> None:
    """Makes the whole feed the first time, and later only active signals if too few are left."""
    signals = _own_signals()
    known = signals.count()
    planned: list[Planned] = []
    if not known:
        progress("Publishing signals")
        planned += _plan(now_ms, settings.DEMO_SEED, PAST_SIGNALS, are_closed=True)
    missing = ACTIVE_SIGNALS - signals.active().count()
    if missing > 0:
        seed = settings.DEMO_SEED + known + len(planned)
        planned += _plan(now_ms, seed, missing, are_closed=False)
    with transaction.atomic():
        # Another process may have planned the same.
        if hold_demo() and signals.count() == known:
            _carry_out(planned)


def lacks_signals() -> bool:
    return _own_signals().active().count() < ACTIVE_SIGNALS


def _own_signals() -> SignalQuerySet:
    return Signal.objects.filter(user__in=_publishers())


def _publishers() -> QuerySet[User]:
    """Leaves out real people who happen to have such a name."""
    return User.objects.filter(username__in=PUBLISHERS, account__is_demo=True)


def _carry_out(planned: list[Planned]) -> None:
    """Ordered by time, as the ledger is."""
    acts: list[tuple[datetime, Callable[[], object]]] = []
    for signal, quote, closing in planned:
        acts.append((signal.published_at, partial(enter_feed, signal, quote)))
        if closing is not None:
            acts.append((moment(closing.at_ms), partial(close_signal, closing)))
    for _, act in sorted(acts, key=itemgetter(0)):
        act()


def _plan(now_ms: int, seed: int, wanted: int, *, are_closed: bool) -> list[Planned]:
    dice = random.Random(seed)  # noqa: S311 - the demo's dice guard nothing
    shares = zip(_publishers().order_by("username"), SHARES, strict=False)
    publishers = cycle([publisher for publisher, share in shares for _ in range(share)])
    instruments = Instrument.objects.in_bulk()
    # Old enough to have been closed, or young enough to be open still.
    youngest, oldest = (600, MOST_MINUTES) if are_closed else (1, 2_000)
    made: list[Planned] = []
    # There is no opinion on the test instrument, and none of the demo's people on a real price.
    since_ms = simulated_since()
    offered = [facts for facts in priced_by_demo() if facts.symbol != TEST_SYMBOL and facts.id in since_ms]
    for facts in islice(cycle(offered), 20 * wanted):
        start_ms = now_ms - dice.randrange(youngest, oldest) * MINUTE_MS
        if start_ms < since_ms[facts.id]:
            continue
        path = _stored_minutes(facts, start_ms, interval_start(now_ms, MINUTE_MS))
        start = next(path, None)
        found = None if start is None else _planned(facts, start, path, dice)
        if found is not None and (found.closing is not None) == are_closed:
            found.signal.user = next(publishers)
            found.signal.instrument = instruments[facts.id]
            made.append(found)
        if len(made) == wanted:
            break
    return made


def _stored_minutes(facts: InstrumentFacts, start_ms: int, end_ms: int) -> Iterator[PriceBar]:
    """Read a day at a time, because most signals end early."""
    start_ms = -(-start_ms // MINUTE_MS) * MINUTE_MS
    for begin_ms in range(start_ms, end_ms, TIMEFRAMES["1d"]):
        yield from read_minutes_since(
            facts, begin_ms, simulated=True, before_ms=min(end_ms, begin_ms + TIMEFRAMES["1d"])
        )


def _planned(
    facts: InstrumentFacts, start: PriceBar, path: Iterator[PriceBar], dice: random.Random
) -> Planned:
    """A signal published at the close of a minute, with levels that the volatility suggests."""
    direction = dice.choice(("buy", "sell"))
    sign = 1 if direction == "buy" else -1
    bid, ask = start.close, start.ask_low + start.close - start.low
    tradable = ask if direction == "buy" else bid
    risk = max(30 * (start.high - start.low), tradable * 0.002) * dice.uniform(0.7, 1.6)
    price = partial(_rounded, digits=facts.digits)
    at_ms = start.opened_ms + MINUTE_MS
    signal = Signal(
        instrument_id=facts.id,
        direction=direction,
        entry=price(tradable),
        tradable_price=price(tradable),
        stop_loss=price(tradable - sign * risk),
        take_profit=price(tradable + sign * risk * dice.uniform(1.0, 2.5)),
        published_at=moment(at_ms),
        expires_at=moment(at_ms) + LIFETIME,
    )
    quote = Quoted(price(bid), price(ask), at_ms)
    return Planned(signal, quote, _first_closing(signal, quote, path, facts.digits))


def _first_closing(signal: Signal, quote: Quoted, path: Iterator[PriceBar], digits: int) -> Closing | None:
    """None for a signal that is still open where the path ends."""
    ends_ms = epoch_ms(signal.expires_at)
    levels = SignalLevels(signal.direction, signal.stop_loss, signal.take_profit, quote.time_ms, ends_ms)
    first = exit_price(signal.direction, quote.bid, quote.ask)
    highest = lowest = float(first)
    # Between these levels no signal ends: only the other minutes are judged exactly by the rules.
    point = 10.0**-digits
    below, above = sorted((float(signal.stop_loss), float(signal.take_profit)))
    below, above = below + point, above - point
    for candle in path:
        low, high = (candle.low, candle.high) if levels.is_buy else (candle.ask_low, candle.ask_high)
        if low <= below or high >= above or candle.opened_ms + MINUTE_MS >= ends_ms:
            kept = candle.open, candle.low, candle.high, candle.ask_low, candle.ask_high
            minute = StoredMinute(candle.opened_ms, *(_rounded(price, digits) for price in kept))
            if exit_ := by_minute(levels, minute):
                seen = SeenExtremes(_rounded(highest, digits), _rounded(lowest, digits), 0)
                closing = Closing.by_candle(signal.pk, exit_, minute, seen)
                return closing._replace(at_ms=candle.opened_ms + MINUTE_MS // 2)
        highest, lowest = max(highest, high), min(lowest, low)
    return None


def _rounded(price: float, digits: int) -> Decimal:
    return Decimal(f"{price:.{digits}f}")


# Two share the work well; the database has one writer at a time.
MOST_MAKERS = 2


def refuse_outside_demo() -> None:
    """Invented prices and people must not mix with real ones."""
    if settings.PRODUCTION:
        raise CommandError("This is a command of the demo, and PRODUCTION=1 has none. Nothing was changed.")
    if not settings.DEMO:
        raise CommandError("This is a command of the demo, which DEMO=0 switches off. Nothing was changed.")


def seed(progress: Progress) -> None:
    """DEMO_SEED and the secret decide what is made. Loading again adds what is missing."""
    begin(progress)
    finish(progress)


def begin(progress: Progress) -> None:
    """The minimum for a service: people, instruments, and a market that continues from now."""
    refuse_outside_demo()
    seed_instruments(progress)
    seed_people()
    seed_recent(_now_ms(), progress)


def makers_needed() -> int:
    """For how many processes there is something left to `finish`."""
    if UnfinishedPast.objects.exists():
        announce_makers()
        return MOST_MAKERS
    return int(lacks_signals() or lacks_news())


def finish(progress: Progress, go_on: Callable[[], bool] = lambda: True) -> None:
    """Everything else: the past, and what follows from it. `go_on` is called between the steps."""
    refuse_outside_demo()
    pasts = UnfinishedPast.objects.all()
    if not pasts.exists():
        _fill_feed(progress)
        return
    # Several processes make the pasts, and one of them does what follows.
    while make_pasts(progress, go_on) and (first := pasts.order_by("pk").first()) is not None:
        if claim(pasts.filter(pk=first.pk)) is not None:
            _fill_feed(progress)
            pasts.delete()
            progress("The demo's past is complete")
        else:
            time.sleep(LOOK_S)


def _fill_feed(progress: Progress) -> None:
    catalogue.load_now()
    seed_signals(_now_ms(), progress)
    seed_news(_now_ms(), progress)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def is_there() -> bool:
    return _demo_users().exists()


def _demo_users() -> QuerySet[User]:
    return User.objects.filter(Q(account__is_demo=True) | Q(account__visitor_from__gt=""))


@transaction.atomic
def remove(progress: Progress) -> None:
    """Removes what the demo brought. What people have made since stays."""
    demo_users = _demo_users()
    if not demo_users.exists():
        return
    hold_demo()
    progress("Removing the demo data")
    remove_demo(list(demo_users.values_list("pk", flat=True)))
    NewsItem.objects.filter(is_demo=True).delete()
    # A source that staff have resumed is theirs.
    Source.objects.filter(is_demo=True, polled_at=None).delete()
    remove_market(_now_ms())
    _remove_instruments()
    for account in Account.objects.filter(user__in=demo_users):
        ControlEvent.objects.publish(EventKind.ACCOUNT_CHANGED, by="demo", account=account.pk)
    demo_users.delete()
    ControlEvent.objects.publish(EventKind.INSTRUMENTS_CHANGED, by="demo")


def _remove_instruments() -> None:
    """An instrument stays if signals, candles, prices or news name it, or if it was given a source."""
    unused = {"candles": None, "signals": None, "news": None, "last_quote": None}
    brought().filter(**unused, source="", fallback="").delete()
    brought_calendars().filter(instruments=None).delete()
