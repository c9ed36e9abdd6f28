"""What is looked at each minute, and how steeply it rises."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import psycopg
from redis import Redis

from tests.reliability.clients.measures import rss_kib

MIB = 1024 * 1024
# Of each table with its indexes, and of what autovacuum has not given back yet.
SIZES = """
SELECT relname, pg_total_relation_size(relid), n_live_tup FROM pg_stat_user_tables ORDER BY 2 DESC
"""
COUNTED = ("signals_feed_signal", "market_candle", "accounts_controlevent", "django_session")


class Sample(NamedTuple):
    minute: float
    figures: dict[str, float]


def figures_of(name: str, pid: int) -> dict[str, float]:
    """Of one process."""
    place = Path(f"/proc/{pid}")
    return {
        f"RSS of {name}, MiB": rss_kib(pid) / 1024,
        f"descriptors of {name}": len(os.listdir(place / "fd")),
        f"threads of {name}": len(os.listdir(place / "task")),
    }


class Cores:
    """What the hypervisor gave to other machines of the time of this one's cores, since it was asked last."""

    def __init__(self) -> None:
        self._before = self._read()

    def take(self) -> dict[str, float]:
        now = self._read()
        spent = [later - earlier for earlier, later in zip(self._before, now, strict=True)]
        self._before = now
        return {"time given to other machines, %": 100 * spent[-1] / (sum(spent) or 1)}

    def _read(self) -> list[int]:
        """user, nice, system, idle, iowait, irq, softirq, steal"""
        return [int(ticks) for ticks in Path("/proc/stat").read_text().split(maxsplit=9)[1:9]]


def sizes(database_url: str, redis_url: str) -> dict[str, float]:
    """In MiB."""
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(SIZES).fetchall()
        backends = connection.execute("SELECT count(*) FROM pg_stat_activity").fetchone() or (0,)
    with Redis.from_url(redis_url) as client:
        used = client.info("memory")["used_memory"]
    found = {f"table {name}, MiB": size / MIB for name, size, _ in tables[:8]}
    found |= {f"rows of {name}": rows for name, _, rows in tables if name in COUNTED}
    total = sum(size for _, size, _ in tables) / MIB
    return found | {"all tables, MiB": total, "database connections": backends[0], "Redis, MiB": used / MIB}


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the straight line that fits best: how much it rises in an hour, where points are minutes."""
    if len(points) < 2:
        return 0.0
    middle = sum(at for at, _ in points) / len(points)
    spread = sum((at - middle) ** 2 for at, _ in points)
    return 60 * sum((at - middle) * value for at, value in points) / spread if spread else 0.0


def settled(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Without the first half, and at most half an hour: caches fill, pools grow to their size."""
    from_minute = min(30.0, samples[-1].minute / 2)
    return [sample for sample in samples if sample.minute >= from_minute]


def slopes(samples: Sequence[Sample]) -> Mapping[str, float]:
    names = samples[-1].figures
    later = settled(samples)
    return {
        name: slope([(each.minute, each.figures[name]) for each in later if name in each.figures])
        for name in names
    }
