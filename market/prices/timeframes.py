"""The six intervals of candles, aligned to UTC."""

MINUTE_MS = 60_000
TIMEFRAMES = {
    "1m": MINUTE_MS,
    "5m": 5 * MINUTE_MS,
    "15m": 15 * MINUTE_MS,
    "1h": 60 * MINUTE_MS,
    "4h": 240 * MINUTE_MS,
    "1d": 1440 * MINUTE_MS,
}
COARSER = {name: span_ms for name, span_ms in TIMEFRAMES.items() if name != "1m"}


def interval_start(time_ms: int, span_ms: int) -> int:
    """The epoch began at a UTC midnight, so every span divides it evenly: 4h at 00, 04, 08 …"""
    return time_ms - time_ms % span_ms
