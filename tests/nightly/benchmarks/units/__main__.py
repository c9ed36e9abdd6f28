"""`make bench-units`: what a request, a tick and a stream cost Redis, PostgreSQL and the web process, and
what a web process costs everybody by being there. docs/operate/scale.md reckons with these figures and with
those of a message, which `make bench-streams` measures."""

from __future__ import annotations

from tests.nightly.benchmarks.tables import aligned, say

from .counting import INSTRUMENTS, Counts
from .visits import Measured, Visits, follow, visits

TICKS, SECONDS = 2_000, 10.0
FEW, MANY = 1, 4
RATES = (500, 5_300)


def main() -> None:
    say("Each figure is of processor time, which other work on the machine moves little.\n")
    visited = visits()
    say(f"\n{aligned(asked_table(visited))}\n")
    idle, few, many = follow(FEW, 0, SECONDS), follow(FEW, TICKS, SECONDS), follow(MANY, TICKS, SECONDS)
    wanted = follow(FEW, TICKS, SECONDS, is_wanted=True)
    rates = {rate: few if rate == TICKS else follow(FEW, rate, SECONDS) for rate in sorted({*RATES, TICKS})}
    say(f"{TICKS:,} ticks a second of {INSTRUMENTS} instruments:\n\n")
    say(f"{aligned(tick_table(idle, few, many, wanted))}\n{aligned(rate_table(idle, rates))}\n")
    say(aligned(idle_table(idle)))


def asked_table(visited: Visits) -> list[list[str]]:
    each = {
        "a quote, one client": visited.alone,
        "a quote, sixteen clients": visited.together,
        "50 of 10,000 signals": visited.signals,
        "50 of 10,000 news items": visited.news,
        "a stream that begins": visited.begun,
        "a stream that is open, a second": visited.stays,
        "a stream that ends": visited.ended,
        "a web process at rest, a second": visited.at_rest,
    }
    heads = ["", "web process, µs", "Redis, µs", "EVALSHA", "of that, µs", "queries", "PostgreSQL, µs"]
    rows = [heads, *([name, *cells(counts)] for name, counts in each.items())]
    return [*rows, ["a stream that is open", f"{visited.stream_kb:.1f} KB", "", "", "", "", ""]]


def cells(counts: Counts) -> list[str]:
    return [
        f"{counts.web_s * 1e6:.1f}",
        f"{counts.redis_s * 1e6:.1f}",
        f"{counts.scripts:.2f}",
        f"{counts.scripts_us:.1f}",
        f"{counts.queries:.2f}",
        f"{counts.postgres_s * 1e6:.0f}",
    ]


def tick_table(idle: Measured, few: Measured, many: Measured, wanted: Measured) -> list[list[str]]:
    readers, one = many.webs - few.webs, few.used
    per_reader_us = (many.used.redis_s - one.redis_s) / readers / TICKS * 1e6
    bytes_each = (many.used.redis_bytes - one.redis_bytes) / readers / TICKS
    batches = max(one.batches - idle.used.batches, 1)
    followed_us, wanted_us = (beyond(idle, each) / TICKS * 1e6 for each in (few, wanted))
    return [
        ["a tick", "costs", "of"],
        ["taken in by the bus", f"{one.redis_s / TICKS * 1e6 - per_reader_us:.1f} µs", "Redis"],
        ["for each web process", f"{per_reader_us:.1f} µs", "Redis"],
        ["for each web process", f"{bytes_each:.0f} bytes", "the network behind Redis"],
        ["for each batch and web process", f"{per_reader_us * TICKS / batches:.1f} µs", "Redis"],
        ["in a batch", f"{TICKS / batches:.1f} ticks", f"{batches:.0f} batches a second"],
        ["followed, where nobody wants it", f"{followed_us:.1f} µs", "each web process"],
        ["followed, where a client wants all", f"{wanted_us:.1f} µs", "its web process"],
    ]


def rate_table(idle: Measured, rates: dict[int, Measured]) -> list[list[str]]:
    """What is read costs at each reading, whatever comes, and each tick a little more."""
    rows = [["ticks a second that nobody wants", "of a core", "beyond one that idles", "for each tick more"]]
    for before, (rate, measured) in zip((None, *rates), rates.items(), strict=False):
        more = "" if before is None else f"{per_tick_us(rates, before, rate):.1f} µs"
        used, spent = measured.used.web_s, beyond(idle, measured)
        rows.append([f"{rate:,}", f"{used:.1%}", f"{spent:.1%}", more])
    return rows


def beyond(idle: Measured, measured: Measured) -> float:
    return measured.used.web_s - idle.used.web_s


def per_tick_us(rates: dict[int, Measured], fewer: int, more: int) -> float:
    return (rates[more].used.web_s - rates[fewer].used.web_s) / (more - fewer) * 1e6


def idle_table(idle: Measured) -> list[list[str]]:
    return [
        ["a web process that idles", "costs", "of"],
        ["", f"{idle.used.web_s * 1000:.0f} ms a second", "a core"],
        ["", f"{idle.resident_mb:.0f} MB", "memory"],
        ["", f"{idle.used.transactions:.1f} transactions a second", "PostgreSQL"],
        ["", f"{idle.connections} connections", "PostgreSQL"],
    ]


if __name__ == "__main__":
    main()
