"""Messages with few clients and with many, of few symbols and of many, beside a server in C that does nothing
else. Each comparison holds everything else: ticks a second, how many get each tick, and messages a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.nightly.benchmarks.streams.__main__ import Bench, Loads, at_pace
from tests.nightly.benchmarks.streams.cases import LIMIT, OURS, Case
from tests.nightly.benchmarks.streams.servers import Product, Start, servers
from tests.nightly.benchmarks.tables import say, spread

from .report import Growth

AUDIENCE, ROUNDS, RETRIES = 100, 3, 4
# 50,000 messages a second, of which each is written alone: the server sleeps for most of the time.
STEADY = {"rate": 500, "warm": 2, "seconds": 4}


class Sizes(NamedTuple):
    what: str
    cases: Mapping[str, Mapping[str, float]]
    """What the load client is told, by how many there are."""


CLIENTS = Sizes(
    "a message, by clients",
    {
        f"{clients:,}": {"clients": clients, "symbols": 200, "own": 200 * AUDIENCE // clients, **STEADY}
        for clients in (100, 1_000, 10_000)
    },
)
SYMBOLS = Sizes(
    "a message, by symbols",
    {
        f"{symbols}": {"clients": 5 * AUDIENCE, "symbols": symbols, "own": symbols // 5, **STEADY}
        for symbols in (10, 50, 500)
    },
)


def measure(directory: Path, chosen: Sequence[Sizes]) -> list[Growth]:
    symbols = {int(options["symbols"]) for sizes in chosen for options in sizes.cases.values()}
    with at_pace() as pace:
        benches = {many: Bench(starts(directory / str(many), many), pace, RETRIES) for many in symbols}
        for number in range(ROUNDS):
            for sizes in chosen:
                for size, options in sizes.cases.items():
                    bench = benches[int(options["symbols"])]
                    bench.run(Case(f"{sizes.what}: {size}", options, (OURS, LIMIT)))
                say(f"Round {number + 1} of {ROUNDS}: {sizes.what}\n")
    loads = {key: each for bench in benches.values() for key, each in bench.loads.items()}
    say(together(loads))
    return [growth(sizes, loads) for sizes in chosen]


def starts(directory: Path, many: int) -> dict[str, Start]:
    """In a market of so many instruments."""
    directory.mkdir()
    product = Product(directory, many)
    return {OURS: product.alone, LIMIT: servers(directory, product)[LIMIT]}


def growth(sizes: Sizes, loads: Loads) -> Growth:
    ours, peer = (
        [
            [1e6 / load.messages_per_cpu_s for load in loads[f"{sizes.what}: {size}", server]]
            for size in sizes.cases
        ]
        for server in (OURS, LIMIT)
    )
    return Growth(sizes.what, list(sizes.cases), ours, peer)


def together(loads: Loads) -> str:
    """Whether it was the same work: what came together costs less."""
    lines = (
        f"{case}, {server}: {spread([load.ticks_a_read for load in each])} ticks together, "
        f"{spread([1e6 / load.messages_per_cpu_s for load in each])} µs each, "
        f"{sum(load.missing for load in each)} missing, {sum(load.is_disturbed for load in each)} disturbed"
        for (case, server), each in loads.items()
    )
    return "\n".join(["", *lines, "", ""])
