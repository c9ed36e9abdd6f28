import msgspec


class Tick(msgspec.Struct, frozen=True, gc=False):
    """A quote, or a trade with the quote that stood when it was made."""

    symbol: str
    bid: float
    ask: float
    time_ms: int
    volume: float = 0.0
    """The size of a trade; a quote has none."""
    side: int = 0
    """1 if the taker bought, -1 if the taker sold, 0 for a quote or where nobody says."""
    price: float | None = None
    """The price of a trade."""
    source_seq: int | None = None
    """The source's own number of it, rising; quotes and trades (by their side) are numbered apart."""
