"""Ticks as they come in, and what the engine decides: the same records make the same prices everywhere."""

from typing import NamedTuple

import msgspec

from instruments.facts import PUSH

from .candles import PriceBar

MOVED = "moved"


class Tick(msgspec.Struct, frozen=True, gc=False):
    """A quote, or a trade with the quote that stood when it was made."""

    symbol: str
    bid: float
    ask: float
    time_ms: int
    volume: float = 0.0
    """The size of a trade; a quote has none."""
    side: int = 0
    """1 if the taker bought, -1 if the taker sold, 0 for a quote or if unknown."""
    price: float | None = None
    """The price of a trade."""
    source_seq: int | None = None
    """The source's own number of it, rising; quotes and trades (by their side) are numbered apart."""


class StandingQuote(Tick, frozen=True, gc=False):
    """The quote as it stands when a connection begins, from when it last changed: older than what was taken
    before, it is the present one all the same."""


class ClosedCandle(msgspec.Struct, gc=False, array_like=True):
    """A candle as the engine closed it, rounded as it is answered."""

    timeframe: str
    seq: int
    """Its number among the closed candles of the symbol and timeframe."""
    ended_ms: int
    """The end of its interval, or of the market's session in it, whichever was first."""
    opened_ms: int
    open: float
    high: float
    low: float
    close: float
    volume: float
    partial: bool = False
    """Something of it was missed, and did not come later."""


ClosedCandles = list[ClosedCandle] | None
"""Those that a record closed, in their order."""


class JournalRecord(msgspec.Struct, gc=False, array_like=True):
    """A new field stands behind all others and has a default: a process of the version before does not look
    there, and sends none."""

    symbol: str


class TickAccepted(JournalRecord, tag=0):
    """A tick that was let in, with its numbers in the two streams."""

    bid: float
    ask: float
    time_ms: int
    volume: float
    seq: int
    flow_seq: int = 0
    """0: the tick is none of the order flow's, and the fields below say nothing."""
    bid_volume: float = 0.0
    ask_volume: float = 0.0
    cumulative_delta: float = 0.0
    price: float = 0.0
    numbering: str = ""
    """Whose `source_seq` it is; empty if the source gives none."""
    source_seq: int = 0
    accepted_ms: int = 0
    """When the engine admitted it, by the engine's clock; 0 if unknown."""
    source: str = ""
    """The feed of its candle; empty if unknown."""
    side: int = 0
    """That of the trade, as in `Tick`."""
    closed: ClosedCandles = None
    settled: bool = True
    """False from a refused outlier on, until the prices are settled again."""
    unsettled_ms: int = 0
    """How long they were not, in this numbering until now."""
    key: str = ""
    """The public ID of the key that pushed it; empty for other feeds and if unknown."""
    is_moved: bool = False
    """Its venue was reached at an address that is not the venue's own."""
    ahead_ms: int = 0
    """How far the engine's clock was ahead of the venue's."""

    @property
    def feed(self) -> str:
        """Who made the price: a venue (`kraken:moved` if it was not reached at its own address),
        `push:<public ID of the key>`, `replay` or `demo`."""
        name = self.source.partition(":")[0]
        return f"{PUSH}:{self.key}" if self.key else f"{name}:{MOVED}" if self.is_moved else name


class CandlesEnded(JournalRecord, tag=1):
    """Nothing more is taken from before then: candles that end until then are closed."""

    until_ms: int
    closed: ClosedCandles = None


class EmptyMinute(JournalRecord, tag=2):
    """A minute went by without a tick while the source was alive: a flat candle."""

    minute_ms: int
    source: str = ""
    closed: ClosedCandles = None


class MarketClosed(JournalRecord, tag=3):
    """The market closed, and with it every candle that ends before it opens again."""

    reopens_ms: int = 0
    closed: ClosedCandles = None


class HistoryMinute(JournalRecord, tag=4):
    """A closed minute out of the source's own history."""

    minute: PriceBar
    basis: str
    closed: ClosedCandles = None
    is_part: bool = False
    """It is what was missed of a minute that is still open, and goes behind what is known of it."""
    replaces: bool = False
    """Something of the minute was missed, and it stands for what is known of that."""


class AbsorptionFound(JournalRecord, tag=5):
    """One side took in what the other threw at it, and the price held."""

    flow_seq: int
    side: str
    price: float
    volume: float
    delta: float
    price_range: float
    strength: float
    time_ms: int


class SeriesBegan(JournalRecord, tag=7):
    """A series of the other kind begins, with the quote that ended it the last time. What is stored of it
    replaces what is known of the symbol."""

    simulated: bool
    at_ms: int
    seq: int
    bid: float = 0.0
    """0: it was never quoted."""
    ask: float = 0.0
    time_ms: int = 0


class StatusRecord(JournalRecord, tag=6):
    """How the engine is doing, for metrics and the back office; the symbol is empty."""

    status: bytes


AnyRecord = (
    TickAccepted
    | CandlesEnded
    | EmptyMinute
    | MarketClosed
    | HistoryMinute
    | AbsorptionFound
    | StatusRecord
    | SeriesBegan
)


ClosingRecord = TickAccepted | CandlesEnded | EmptyMinute | MarketClosed | HistoryMinute
"""What can close candles."""


def closed_by(record: AnyRecord) -> list[ClosedCandle]:
    """The candles that it closed, with their numbers; none where an older engine gave none."""
    # Runs for every tick without subscribers; a check of the type would cost several times as much.
    closed: ClosedCandles = getattr(record, "closed", None)
    return closed or []


class JournalPosition(NamedTuple):
    """Up to where the journal is written."""

    epoch: str
    number: int
