"""What simulated instruments are like. A random byte chooses one of 256 equally likely spreads or sizes."""

from math import floor, log10
from zlib import crc32

import msgspec

from instruments.facts import TEST_SYMBOL


class Profile(msgspec.Struct, frozen=True):
    base_price: float
    yearly_volatility: float
    spread: float
    ticks_per_second: float
    volume_unit: float
    digits: int
    least_per_second: int = 0


# Levels as of November 2026, crosses equal to the product of their legs.
PROFILES: dict[str, Profile] = {
    "EURUSD": Profile(1.1450, 0.07, 0.00003, 1.3, 100_000, 5),
    "GBPUSD": Profile(1.3450, 0.08, 0.00006, 1.2, 100_000, 5),
    "USDJPY": Profile(155.00, 0.09, 0.005, 1.3, 100_000, 3),
    "USDCHF": Profile(0.8000, 0.08, 0.00007, 0.9, 100_000, 5),
    "AUDUSD": Profile(0.6600, 0.09, 0.00005, 1.0, 100_000, 5),
    "USDCAD": Profile(1.3900, 0.06, 0.00007, 0.9, 100_000, 5),
    "NZDUSD": Profile(0.5800, 0.10, 0.00008, 0.8, 100_000, 5),
    "EURGBP": Profile(0.8513, 0.05, 0.00006, 0.8, 100_000, 5),
    "EURJPY": Profile(177.48, 0.09, 0.008, 1.1, 100_000, 3),
    "XAUUSD": Profile(4200.0, 0.17, 0.30, 2.0, 1, 2),
    "XAGUSD": Profile(52.00, 0.30, 0.025, 1.2, 50, 3),
    "WTIUSD": Profile(62.00, 0.35, 0.03, 1.0, 10, 2),
    "BTCUSD": Profile(92_000.0, 0.45, 3.0, 5.5, 0.01, 2, least_per_second=4),
    "ETHUSD": Profile(3_100.0, 0.60, 0.25, 5.2, 0.1, 2, least_per_second=4),
    "US500": Profile(6_800.0, 0.15, 0.5, 1.8, 1, 1),
    "US100": Profile(25_000.0, 0.20, 1.5, 2.0, 1, 1),
    "US30": Profile(47_000.0, 0.14, 3.0, 1.5, 1, 1),
    "GER40": Profile(24_000.0, 0.16, 1.5, 1.2, 1, 1),
    "UK100": Profile(9_700.0, 0.12, 1.2, 0.8, 1, 1),
    "AAPL": Profile(270.00, 0.27, 0.03, 1.0, 20, 2),
    "MSFT": Profile(490.00, 0.25, 0.05, 0.9, 10, 2),
    "NVDA": Profile(185.00, 0.42, 0.02, 2.0, 40, 2),
    "TSLA": Profile(400.00, 0.55, 0.08, 1.6, 15, 2),
    # For clients to test against: never quiet, its price at rest often enough to show absorption.
    TEST_SYMBOL: Profile(100.00, 0.30, 0.02, 6.0, 1, 2, least_per_second=4),
}

# By type: yearly volatility, spread in pips, ticks a second, volume unit, and the digits a price has in all.
_DEFAULTS: dict[str, tuple[float, float, float, float, int]] = {
    "forex": (0.09, 0.8, 0.8, 100_000, 5),
    "commodity": (0.25, 3, 0.8, 1, 4),
    "crypto": (0.70, 3, 5.0, 1, 4),
    "index": (0.16, 1, 1.0, 1, 5),
    "stock": (0.30, 3, 0.8, 10, 4),
}


def profile_for(symbol: str, digits: int, pip_size: float, type: str) -> Profile:
    """The known profile, or a plausible one for an unknown instrument."""
    if symbol in PROFILES:
        return PROFILES[symbol]
    volatility, pips, rate, unit, figures = _DEFAULTS.get(type, _DEFAULTS["stock"])
    # A price with five figures whatever the digits, and not the same one for every unknown symbol.
    base = 10.0 ** (figures - digits) * (0.6 + crc32(symbol.encode()) % 1000 / 1000)
    least = 4 if type == "crypto" else 0
    spread = min(pips * pip_size, base * 0.001)
    return Profile(round(base, digits), volatility, spread, rate, unit, digits, least)


# Measured on an hour of EUR/USD: 5 % of the spreads are a third of the median, the widest three times it.
SPREAD_QUANTILES = ((0.0, 0.33), (0.05, 0.4), (0.5, 1.0), (0.95, 1.35), (0.99, 1.9), (1.0, 3.0))


def spread_points(typical: float) -> list[int]:
    """256 equally likely spreads in points, ordered."""
    points = []
    for i in range(256):
        share = (i + 0.5) / 256
        above = next(n for n, (limit, _) in enumerate(SPREAD_QUANTILES) if limit >= share)
        (x0, y0), (x1, y1) = SPREAD_QUANTILES[above - 1 : above + 1]
        points.append(max(1, round(typical * (y0 + (y1 - y0) * (share - x0) / (x1 - x0)))))
    return points


def trade_sizes(unit: float) -> tuple[int, list[float]]:
    """Decimals of a volume, and 256 equally likely sizes, ordered: many small trades, few large ones."""
    if not unit:
        return 0, [1.0] * 256
    decimals = 1 - floor(log10(unit))
    return decimals, [round(unit / 2 * ((i + 0.5) / 256) ** -0.7, decimals) for i in range(255, -1, -1)]
