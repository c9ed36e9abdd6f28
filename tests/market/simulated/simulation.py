from functools import cache
from itertools import pairwise
from math import log
from statistics import fmean

from core.times import MINUTE_MS
from market.prices.records import Tick
from market.simulated.profiles import PROFILES
from market.simulated.simulated_market import SimulatedBar, SimulatedMarket

START_MS = 1_795_003_200_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
YEAR_MS = 365.25 * DAY_MS
TRADED = ("BTCUSD", "ETHUSD", "TEST")


def make_market(symbol: str = "EURUSD", seed: int = 7, volume_kind: str = "ticks") -> SimulatedMarket:
    profile = PROFILES[symbol]
    return SimulatedMarket(seed, symbol, profile.digits, profile, volume_kind)


# Making them is what takes so long, and several tests look at the same.
@cache
def make_ticks(symbol: str = "EURUSD", span_ms: int = HOUR_MS, volume_kind: str = "ticks") -> list[Tick]:
    return make_market(symbol, volume_kind=volume_kind).ticks_between(START_MS, START_MS + span_ms)


@cache
def make_bars(symbol: str = "EURUSD", span_ms: int = DAY_MS, step_ms: int = MINUTE_MS) -> list[SimulatedBar]:
    return list(make_market(symbol).bars_between(START_MS, START_MS + span_ms, step_ms))


def returns_of(bars: list[SimulatedBar], every: int = 1) -> list[float]:
    closes = [log(bar[4]) for bar in bars[::every]]
    return [later - earlier for earlier, later in pairwise(closes)]


def mean_square(values: list[float]) -> float:
    return fmean([value * value for value in values])


def gaps_of(ticks: list[Tick]) -> list[int]:
    return [later.time_ms - earlier.time_ms for earlier, later in pairwise(ticks)]


def points_of(price: float, symbol: str) -> float:
    return price * 10.0 ** PROFILES[symbol].digits


@cache
def ticks_of_minute(symbol: str, open_ms: int) -> list[Tick]:
    return make_market(symbol).ticks_between(open_ms, open_ms + MINUTE_MS)


def ticks_by_bar(symbol: str, bars: list[SimulatedBar]) -> list[list[Tick]]:
    return [ticks_of_minute(symbol, bar[0]) for bar in bars]


def trades_of(symbol: str, span_ms: int) -> list[Tick]:
    return [tick for tick in make_ticks(symbol, span_ms, "traded") if tick.side]
