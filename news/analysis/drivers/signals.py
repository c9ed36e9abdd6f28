"""What those who publish signals have at stake now. Pure."""

from __future__ import annotations

from news.analysis.answer import Finding, SignalsEvidence
from news.analysis.facts import Facts, QuoteFact, SignalFact

# So many opinions of nobody in particular keep one or two signals from being a chorus.
DOUBTS = 2


def weigh(facts: Facts) -> Finding:
    signals = facts.signals
    if not signals:
        return Finding("No signal on it is active.")
    buys = sum(1 for signal in signals if signal.side > 0)
    sells = len(signals) - buys
    at_risk = round(sum(r_at_risk(signal, facts.quote) for signal in signals), 2)
    text = f"{counted(buys, 'buy')} and {counted(sells, 'sell')} are active, with {at_risk} R at risk."
    return Finding(text, (buys - sells) / (len(signals) + DOUBTS), SignalsEvidence(buys, sells, at_risk))


def r_at_risk(signal: SignalFact, quote: QuoteFact | None) -> float:
    """What is lost from here to the stop, in units of what was risked."""
    if quote is None:
        return 1.0
    # A buyer gets out on the bid, a seller on the ask.
    exit_price = quote.bid if signal.side > 0 else quote.ask
    risked = abs(signal.entry - signal.stop_loss)
    return max(0.0, signal.side * (exit_price - signal.stop_loss) / risked)


def counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
