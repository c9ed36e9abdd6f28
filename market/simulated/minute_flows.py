"""The order flow of simulated minutes, made of their bars: what their ticks might have come to."""

from collections.abc import Iterable, Iterator

from core.times import MINUTE_MS
from market.prices.candles import DAY_MS, PriceBar
from market.prices.order_flow import UNITS, MinuteFlow

from .noise import BELL, BELL_DEVIATION, byte_at, derive_key

# As in the ticks of the simulated market, delta correlates with the move of its minute at about 0.5.
MOVE, NOISE, MOST = 0.25, 0.22, 0.9
# One minute in about six has an absorption.
ABSORBING = 42


def minute_flows(bars: Iterable[PriceBar], seed: int, symbol: str) -> Iterator[MinuteFlow]:
    """Of minutes in order that begin with a day: the running sum begins there, too."""
    leans, absorptions = (derive_key(seed, symbol, f"minute {what}") for what in ("delta", "absorption"))
    day = running = 0
    for bar in bars:
        minute = bar.opened_ms // MINUTE_MS
        if bar.opened_ms // DAY_MS != day:
            day, running = bar.opened_ms // DAY_MS, 0
        bought, sold = _sides(bar, (BELL[byte_at(leans, minute)] - 127.5) / BELL_DEVIATION)
        running += bought - sold
        found = int(byte_at(absorptions, minute) < ABSORBING)
        yield MinuteFlow(bar.opened_ms, sold / UNITS, bought / UNITS, running / UNITS, found)


def _sides(bar: PriceBar, noise: float) -> tuple[int, int]:
    """In whole hundred-millionths, which together are the volume of the bar."""
    span = bar.high - bar.low
    lean = MOVE * (bar.close - bar.open) / span if span else 0.0
    share = (1 + max(-MOST, min(MOST, lean + NOISE * noise))) / 2
    volume = round(bar.volume * UNITS)
    # Ticks are whole, and trades have no more than three decimals.
    step = UNITS if not volume % UNITS else UNITS // 1_000
    bought = min(volume, round(volume * share / step) * step)
    return bought, volume - bought
