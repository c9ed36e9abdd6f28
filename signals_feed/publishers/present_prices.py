"""What open signals would gain if they closed now."""

from decimal import Decimal

from core import clock
from core.times import moment
from instruments.catalogue import catalogue
from market import runtime as market
from market.models import LastQuote
from signals_feed.exits import exit_price, gain
from signals_feed.rules import exact_price

from .record import Filled, Mark


class PresentPrices:
    """Those of one answer, so that each instrument is looked up once."""

    def __init__(self) -> None:
        self._quotes: dict[str, tuple[Decimal, Decimal] | None] = {}

    def mark(self, filled: Filled) -> Mark:
        if filled.symbol not in self._quotes:
            self._quotes[filled.symbol] = bid_and_ask(filled.symbol)
        quote = self._quotes[filled.symbol]
        if quote is None:
            # Nobody knows how it would have ended: a loser must not stay out of the figures for ever.
            is_over = filled.expires_at < moment(clock.now_ms())
            return Mark(-filled.distance if is_over else Decimal(0))
        gained = gain(filled.direction, filled.paid, exit_price(filled.direction, *quote))
        return Mark(gained if filled.holds else min(gained, Decimal(0)))


def bid_and_ask(symbol: str) -> tuple[Decimal, Decimal] | None:
    """The last ones, also of an instrument that was deactivated since. None where nobody may be told them:
    a figure would tell them too."""
    facts = catalogue.known(symbol)
    if facts is None or facts.is_withheld:
        return None
    if quote := market.quote(symbol):
        return exact_price(quote.bid), exact_price(quote.ask)
    stored = LastQuote.objects.filter(pk=facts.id).values_list("bid", "ask").first()
    bid, ask = stored or (None, None)
    return None if bid is None or ask is None else (round(bid, facts.digits), round(ask, facts.digits))
