"""Spreads and sizes as 256 equally likely values each, so that a byte of chance chooses one."""

from math import floor, log10

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
