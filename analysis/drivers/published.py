"""Recent publications: news about the instrument and its category, and active signals on it."""

from analysis.answer import Finding, NewsEvidence, SignalsEvidence, WeighedItem
from analysis.facts import Facts, NewsFact, QuoteFact, SignalFact
from core.times import iso_ms
from market.prices import TIMEFRAMES
from news.labels import sentiment_label
from signals_feed.exits import exit_price

HOUR_MS = TIMEFRAMES["1h"]
LOOKED_BACK_MS = 72 * HOUR_MS
HALVES_AFTER_MS = 12 * HOUR_MS
OF_CATEGORY = 0.5

# Doubt worth half a fresh item: old or single items move the score less.
DOUBT = 0.5
SHOWN = 8


def weigh_news(facts: Facts) -> Finding:
    weighed = [
        (weight_of(item, facts), item)
        for item in facts.news
        if facts.at_ms - item.published_ms <= LOOKED_BACK_MS
    ]
    if not weighed:
        return Finding("No news of the last three days concerns it.")
    total = DOUBT + sum(weight for weight, _ in weighed)
    score = sum(weight * item.side * item.score for weight, item in weighed) / total
    weighed.sort(key=lambda each: (-each[0], -each[1].published_ms, -each[1].id))
    shown = [shown_item(item, weight / total) for weight, item in weighed[:SHOWN]]
    return Finding(describe_news(len(weighed), score, shown[0]), score, NewsEvidence(len(weighed), shown))


def weight_of(item: NewsFact, facts: Facts) -> float:
    relevance = 1.0 if item.names_symbol else OF_CATEGORY
    return relevance * float(0.5 ** ((facts.at_ms - item.published_ms) / HALVES_AFTER_MS))


def shown_item(item: NewsFact, share: float) -> WeighedItem:
    return WeighedItem(
        item.id,
        item.title,
        sentiment_label(item.score),
        item.score,
        iso_ms(item.published_ms),
        "symbol" if item.names_symbol else "category",
        1 if item.side > 0 else -1,
        round(share, 4),
    )


def describe_news(number: int, score: float, first: WeighedItem) -> str:
    label, items = sentiment_label(score), counted(number, "item")
    return f"The news of the last three days is {label} ({items}), led by “{first.title}”."


# As if this many neutral signals were active, so that one or two signals decide little.
DOUBTS = 2


def weigh_signals(facts: Facts) -> Finding:
    signals = facts.signals
    if not signals:
        return Finding("No signals are active.")
    buys = sum(signal.side > 0 for signal in signals)
    sells = len(signals) - buys
    at_risk = round(sum(r_at_risk(signal, facts.quote) for signal in signals), 2)
    text = describe_signals(buys, sells, at_risk)
    return Finding(text, (buys - sells) / (len(signals) + DOUBTS), SignalsEvidence(buys, sells, at_risk))


def describe_signals(buys: int, sells: int, at_risk: float) -> str:
    sides = [
        counted(number, side) for number, side in ((buys, "buy signal"), (sells, "sell signal")) if number
    ]
    return f"{' and '.join(sides)} {'is' if buys + sells == 1 else 'are'} active, with {at_risk} R at risk."


def r_at_risk(signal: SignalFact, quote: QuoteFact | None) -> float:
    """The loss from the current price to the stop, in units of the initial risk."""
    if quote is None:
        return 1.0
    price = exit_price("buy" if signal.side > 0 else "sell", quote.bid, quote.ask)
    risked = abs(signal.entry - signal.stop_loss)
    return max(0.0, signal.side * (price - signal.stop_loss) / risked)


def counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
