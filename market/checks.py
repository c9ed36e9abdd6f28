"""System checks: contradictory settings of the market are reported at start."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from market.prices.candles import DAY_MS, TIMEFRAMES
from market.prices.history import KEPT

MOST_PER_SECOND = 50_000


def check_demo_rate(**kwargs: Any) -> list[CheckMessage]:
    if 0 <= settings.DEMO_RATE <= MOST_PER_SECOND:
        return []
    return [
        Error(
            f"DEMO_RATE is {settings.DEMO_RATE}: the demo makes up to {MOST_PER_SECOND:,} ticks a second.",
            hint="Set the ticks a second of all instruments together, or 0 for a lifelike market.",
            id="market.E002",
        )
    ]


def check_candle_days(**kwargs: Any) -> list[CheckMessage]:
    kept: dict[str, int] = settings.CANDLE_DAYS
    negative = [name for name in kept if kept[name] < 0]
    if negative:
        return [
            Error(
                f"{_setting(name)} is {kept[name]}: no candle is kept for fewer than no days.",
                hint="Set the number of days, or 0 to keep them for good.",
                id="market.E001",
            )
            for name in negative
        ]
    return [*_gone_before_finer(kept), *_fewer_than_kept(kept)]


def _gone_before_finer(kept: dict[str, int]) -> Iterator[CheckMessage]:
    for finer, coarser in pairwise(TIMEFRAMES):
        if kept[coarser] and (kept[coarser] < kept[finer] or not kept[finer]):
            yield Warning(
                f"{coarser} candles are dropped before the {finer} candles that they are made of.",
                hint=f"Set {_setting(coarser)} to {_setting(finer)} or more, or to 0 to keep them for good.",
                id="market.W001",
            )


def _fewer_than_kept(kept: dict[str, int]) -> Iterator[CheckMessage]:
    for name, span_ms in TIMEFRAMES.items():
        needed = -(-KEPT * span_ms // DAY_MS)
        if 0 < kept[name] < needed:
            yield Warning(
                f"{_setting(name)}={kept[name]} cannot cut the last {KEPT} candles: they are always kept.",
                hint=f"Set it to {needed} or more, or to 0 to keep them for good.",
                id="market.W002",
            )


def _setting(timeframe: str) -> str:
    return f"CANDLE_DAYS_{timeframe.upper()}"
