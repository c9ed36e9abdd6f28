"""Headlines that were written for the demo. The model that is shipped scores them."""

from datetime import datetime, timedelta

from django.db import transaction

from core.times import moment
from instruments.catalogue import catalogue
from news.calibration import open_outcomes
from news.entering import announce
from news.models import ItemScore, NewsItem, Source
from news.scoring import built_in_model, score_by

from .people import hold_demo
from .progress import Progress

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

# Anybody may read them, but they are asked only after somebody resumes them: the demo needs no network.
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
