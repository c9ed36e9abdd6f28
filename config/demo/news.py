"""Headlines for the demo, written for it. They are scored by hand, which their model says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction

from instruments.catalogue import catalogue
from market.engine.store import moment
from news.calibration.outcomes import open_outcomes
from news.models import ItemScore, NewsItem, Source

MODEL = "demo"
Headline = tuple[str, float | None, str, str]

# Category, score, symbols, title.
HEADLINES = (
    ("forex", 0.62, "EURUSD", "Euro climbs to a three-week high as German factory orders rebound"),
    ("forex", -0.48, "GBPUSD", "Sterling slides after services growth stalls for a second month"),
    ("forex", 0.05, "USDJPY", "Yen little changed as traders wait for the Bank of Japan's minutes"),
    ("forex", -0.37, "AUDUSD", "Australian dollar eases after iron ore drops below its October low"),
    ("forex", 0.33, "USDCAD", "Canadian dollar firms with oil and a stronger jobs report"),
    ("forex", -0.21, "USDCHF", "Franc gives back gains as demand for havens fades"),
    ("forex", 0.41, "NZDUSD", "Kiwi rallies after dairy prices rise for a fourth auction in a row"),
    ("forex", 0.0, "EURGBP", "Euro-sterling holds its narrowest weekly range of the year"),
    ("forex", -0.55, "EURUSD", "Euro falls as inflation in the bloc undershoots every forecast"),
    ("forex", 0.18, "GBPUSD", "Pound edges up as wage growth keeps rate cuts in doubt"),
    ("gold", 0.71, "XAUUSD", "Gold sets a record close as central banks keep buying"),
    ("gold", -0.44, "XAUUSD", "Gold retreats from its peak while real yields turn higher"),
    ("gold", 0.29, "XAGUSD", "Silver outpaces gold on solar demand"),
    ("gold", 0.08, "XAUUSD", "Bullion steady ahead of the payrolls report"),
    ("gold", -0.31, "XAUUSD", "Funds trim gold holdings for the first time in nine weeks"),
    ("gold", 0.52, "XAUUSD", "Jewellery buying before the wedding season lifts gold premiums in Mumbai"),
    ("gold", -0.6, "XAGUSD", "Silver tumbles as factory surveys weaken across Asia"),
    ("gold", 0.36, "XAUUSD", "Safe-haven flows return to gold after talks break down"),
    ("crypto", 0.58, "BTCUSD", "Bitcoin jumps after funds record their largest weekly inflow since spring"),
    ("crypto", -0.66, "ETHUSD", "Ether sinks as a bridge exploit drains a lending protocol"),
    ("crypto", 0.12, "BTCUSD", "Bitcoin trades sideways while miners upgrade their fleets"),
    ("crypto", 0.47, "ETHUSD", "Ether gains as network fees fall to a yearly low"),
    ("crypto", -0.39, "BTCUSD", "Bitcoin slips as an exchange delays withdrawals for maintenance"),
    ("crypto", 0.64, "BTCUSD,ETHUSD", "Pension fund discloses its first digital-asset allocation"),
    ("crypto", -0.27, "ETHUSD", "Developers postpone the next Ethereum upgrade by a quarter"),
    ("crypto", -0.03, "BTCUSD", "Options expiry passes without a move in bitcoin"),
    ("macro", 0.44, "US500", "Inflation cools more than expected, keeping rate cuts on the table"),
    ("macro", -0.58, "US500,US30", "Jobless claims jump to their highest level in two years"),
    ("macro", 0.02, "", "Central bank leaves rates unchanged, as every economist had forecast"),
    ("macro", 0.35, "US500", "Retail sales beat estimates before the holiday season"),
    ("macro", -0.42, "GER40", "German industrial output shrinks for a third month"),
    ("macro", 0.27, "UK100", "British GDP revised up on stronger business investment"),
    ("macro", -0.33, "WTI", "Oil inventories swell as refinery runs slow"),
    ("macro", -0.7, "US500", "Credit spreads widen to a one-year high after a surprise default"),
    ("macro", 0.55, "US500,US100", "Factory survey returns to growth for the first time since March"),
    ("macro", 0.1, "", "Treasury keeps auction sizes steady for the coming quarter"),
)
DRAFTS = (
    ("forex", 0.24, "EURUSD", "Euro seen firmer if this week's surveys confirm the rebound"),
    ("gold", None, "XAUUSD", "Refiners in Switzerland report longer delivery times for gold bars"),
    ("crypto", -0.45, "BTCUSD", "Regulator opens a consultation on leverage in crypto products"),
)


# Open to everybody, and asked only once somebody resumes them: the demo needs no network.
SOURCES = (
    ("Federal Reserve", "https://www.federalreserve.gov/feeds/press_monetary.xml", "macro"),
    ("European Central Bank", "https://www.ecb.europa.eu/rss/press.html", "macro"),
)


@transaction.atomic
def seed_news(now_ms: int, progress: Callable[[str], None]) -> None:
    if NewsItem.objects.filter(is_demo=True).exists():
        return
    progress("Printing the news")
    Source.objects.bulk_create(
        (
            Source(name=name, address=address, category=category, is_active=False, is_demo=True)
            for name, address, category in SOURCES
        ),
        ignore_conflicts=True,
    )
    ids = {facts.symbol: facts.id for facts in catalogue.all()}
    now = moment(now_ms)
    # A stride that shares no divisor with their number mixes the categories.
    mixed = [HEADLINES[i * 7 % len(HEADLINES)] for i in range(len(HEADLINES))]
    for number, told in enumerate((*mixed, *DRAFTS)):
        at = now - timedelta(minutes=11 + 97 * number)
        _print(told, at, ids, is_draft=number >= len(HEADLINES))


def _print(told: Headline, at: datetime, ids: dict[str, int], *, is_draft: bool) -> None:
    """It entered the feed when it was published, so the past of the market settles what it said."""
    category, score, symbols, title = told
    item = NewsItem.objects.create(
        title=title,
        category=category,
        source="Tickwire Demo",
        summary=f"{title}. A made-up story of the demo market.",
        status=NewsItem.Status.DRAFT if is_draft else NewsItem.Status.PUBLISHED,
        sentiment_score=score,
        model="" if score is None else MODEL,
        published_at=at,
        arrived_at=at,
        is_demo=True,
    )
    item.symbols.set(ids[symbol] for symbol in symbols.split(",") if symbol in ids)
    if score is not None:
        ItemScore.objects.create(item=item, title=title, score=score, model=MODEL, scored_at=at)
    if not is_draft:
        open_outcomes([item], at)
