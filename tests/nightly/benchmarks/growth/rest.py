"""REST with few instruments and with many: the same requests, by processor time of the server."""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from tests.nightly.benchmarks.rest.load import CONNECTIONS, found
from tests.nightly.benchmarks.servers import CLIENT_CORE
from tests.nightly.benchmarks.tables import aligned, say

from .market import symbol
from .report import FLOOR, FLOOR_OUT_OF_CACHE, Growth
from .services import Service, filled, serving

SIZES = (25, 5_000)
QUOTE, BARS = "/api/market/{}/quote", "/api/market/{}?timeframe=1h&bars=500"
# All in turn: with thousands of instruments what is answered has left the processor's caches.
ONE, ALL = "one instrument", "all in turn"
WARM_UP_S, ROUNDS, SECONDS = 1, 3, 2
SCRIPT = """
local requests, place = {}, 0
function init(args)
    for number = 0, MANY - 1 do
        local path = string.gsub("PATH", "{}", string.format("SYM%04d", number))
        requests[number + 1] = wrk.format("GET", path)
    end
end
function request()
    place = place % MANY + 1
    return requests[place]
end
"""


@contextmanager
def services(directory: Path, sizes: Sequence[int] = SIZES) -> Iterator[list[Service]]:
    """All of them at once, asleep but for the one that is asked."""
    with ExitStack() as stack:
        running = []
        for many in sizes:
            folder = directory / str(many)
            folder.mkdir()
            key = filled(folder, many)
            running.append(stack.enter_context(serving(folder, many, key)))
            say(f"{many:,} instruments are served.\n")
        yield running


def starts(running: Sequence[Service], sizes: Sequence[int] = SIZES) -> str:
    rows = [["", *(f"{many:,} instruments" for many in sizes)]]
    columns: list[tuple[str, Callable[[Service], str]]] = [
        ("start, until it answers", lambda service: f"{service.started_in_s:.1f} s"),
        ("of that, processor time", lambda service: f"{service.start_cpu_s:.1f} s"),
        ("memory", lambda service: f"{service.resident_mb:,.0f} MB"),
        ("at rest, of a core", lambda service: f"{100 * service.at_rest():.1f}%"),
    ]
    rows += [[title, *map(told, running)] for title, told in columns]
    return aligned(rows)


def measure(running: Sequence[Service], directory: Path, sizes: Sequence[int] = SIZES) -> list[Growth]:
    costs: dict[tuple[str, int], list[float]] = defaultdict(list)
    ask_of_each(running, sizes)
    cases = {
        f"{what}, {whom}": (path, whom)
        for what, path in (("quote", QUOTE), ("500 bars", BARS))
        for whom in (ONE, ALL)
    }
    for title, (path, whom) in cases.items():
        for _ in range(ROUNDS):
            for many, service in zip(sizes, running, strict=True):
                script = directory / "script.lua"
                script.write_text(lua(path, many if whom == ALL else 1))
                with service.peer.awake():
                    cost_us(service, script, WARM_UP_S)
                    costs[title, many].append(cost_us(service, script, SECONDS))
        say(f"{title}\n")
    sides = [f"{many:,}" for many in sizes]
    return [
        Growth(
            title,
            sides,
            [costs[title, many] for many in sizes],
            floor=FLOOR_OUT_OF_CACHE if whom == ALL else FLOOR,
        )
        for title, (_, whom) in cases.items()
    ]


def ask_of_each(running: Sequence[Service], sizes: Sequence[int]) -> None:
    """What is asked for the first time is encoded then; that is another cost."""
    for many, service in zip(sizes, running, strict=True):
        with service.peer.awake(), closing(HTTPConnection(urlsplit(service.peer.url).netloc)) as asker:
            before_s = service.peer.cpu_s()
            for number in range(many):
                asker.request("GET", BARS.format(symbol(number)), headers={"X-API-Key": service.key})
                asker.getresponse().read()
            first_us = (service.peer.cpu_s() - before_s) / many * 1e6
        say(f"{service.peer.name}: 500 bars for the first time {first_us:,.0f} µs each, ")
        say(f"{service.memory_mb:,.0f} MB when all have been asked for\n")


def lua(path: str, many: int) -> str:
    return SCRIPT.replace("MANY", str(many)).replace("PATH", path)


def cost_us(service: Service, script: Path, seconds: int) -> float:
    wrk = shutil.which("wrk")
    if wrk is None:
        raise RuntimeError("wrk is missing: apt-get install wrk")
    options = [
        "-t1",
        f"-c{CONNECTIONS}",
        f"-d{seconds}s",
        "-s",
        str(script),
        "-H",
        f"X-API-Key: {service.key}",
    ]
    command = ["taskset", "-c", str(CLIENT_CORE), wrk, *options, service.peer.url]
    before_s = service.peer.cpu_s()
    said = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30, check=True).stdout
    if "Non-2xx" in said or "Socket errors" in said:
        raise RuntimeError(f"{service.peer.name} refused {symbol(0)}:\n{said}")
    return (service.peer.cpu_s() - before_s) / int(found(r"(\d+) requests in", said)) * 1e6
