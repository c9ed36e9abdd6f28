"""REST with few instruments and with many, as `serve` runs it in one process with SQLite: what a start takes,
and the same requests by processor time of the server."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.nightly.benchmarks.processes import Peer, resident_mb, run_module, running
from tests.nightly.benchmarks.rest.load import measure as measure_load
from tests.nightly.benchmarks.tables import aligned, say
from tests.programs.installation import SETTINGS
from tests.programs.services import free_port

from .market import symbol
from .report import FLOOR, FLOOR_OUT_OF_CACHE, Growth

SIZES = (25, 5_000)
QUOTE, BARS = "/api/market/{}/quote", "/api/market/{}?timeframe=1h&bars=500"
# All in turn: with thousands of instruments what is answered has left the processor's caches.
ONE, ALL = "one instrument", "all in turn"
WARM_UP_S, ROUNDS, SECONDS, CONNECTIONS = 1, 3, 2, 16
START_PATIENCE_S, WATCH_S, REST_S = 600, 0.02, 3.0
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


class Service(Peer):
    def __init__(self, many: int, port: int, pid: int, key: str, started_in_s: float) -> None:
        super().__init__(f"{many:,} instruments", port, pid)
        self.many, self.key, self.started_in_s = many, key, started_in_s
        self.start_cpu_s, self.resident_mb = self.cpu_s(), resident_mb(pid)

    def at_rest(self) -> float:
        """What it takes of its core while nobody asks for anything and no tick comes."""
        with self.awake():
            # What is done once after a start is over when its core is left alone for a moment.
            deadline = time.monotonic() + START_PATIENCE_S
            while (share := self._share()) > 1 / 2 and time.monotonic() < deadline:
                pass
            return share

    def _share(self) -> float:
        before_s, began_s = self.cpu_s(), time.monotonic()
        time.sleep(REST_S)
        return (self.cpu_s() - before_s) / (time.monotonic() - began_s)


@contextmanager
def services(directory: Path) -> Iterator[list[Service]]:
    """All of them at once, asleep but for the one that is asked."""
    with ExitStack() as stack:
        served = []
        for many in SIZES:
            folder = directory / str(many)
            folder.mkdir()
            served.append(stack.enter_context(serving(folder, many)))
            say(f"{many:,} instruments are served.\n")
        yield served


@contextmanager
def serving(folder: Path, many: int) -> Iterator[Service]:
    port, log, own = free_port(), folder / "serve.log", {"VAR_DIR": str(folder / "var")}
    key = run_module("growth.market", many, **own).decode()
    began_s = time.monotonic()
    command, environment = [sys.executable, "manage.py", "serve"], SETTINGS | own | {"PORT": str(port)}
    with running(command, log, environment=environment) as process:
        while not answers(port):
            if process.poll() is not None or time.monotonic() - began_s > START_PATIENCE_S:
                raise RuntimeError(f"serve did not start:\n{log.read_text()}")
            time.sleep(WATCH_S)
        yield Service(many, port, process.pid, key, time.monotonic() - began_s)


def answers(port: int) -> bool:
    with suppress(URLError, OSError):
        urlopen(f"http://127.0.0.1:{port}/healthz", timeout=START_PATIENCE_S).close()
        return True
    return False


def starts(served: Sequence[Service]) -> str:
    return aligned(
        [
            ["", *(each.name for each in served)],
            ["start, until it answers", *(f"{each.started_in_s:.1f} s" for each in served)],
            ["of that, processor time", *(f"{each.start_cpu_s:.1f} s" for each in served)],
            ["memory", *(f"{each.resident_mb:,.0f} MB" for each in served)],
            ["at rest, of a core", *(f"{100 * each.at_rest():.1f}%" for each in served)],
        ]
    )


def measure(served: Sequence[Service], directory: Path) -> list[Growth]:
    for service in served:
        ask_of_each(service)
    growths, script = [], directory / "script.lua"
    for what, path in (("quote", QUOTE), ("500 bars", BARS)):
        for whom, floor in ((ONE, FLOOR), (ALL, FLOOR_OUT_OF_CACHE)):
            costs: dict[int, list[float]] = defaultdict(list)
            for _ in range(ROUNDS):
                for service in served:
                    many = service.many if whom == ALL else 1
                    script.write_text(SCRIPT.replace("MANY", str(many)).replace("PATH", path))
                    with service.awake():
                        cost_us(service, script, WARM_UP_S)
                        costs[service.many].append(cost_us(service, script, SECONDS))
            say(f"{what}, {whom}\n")
            sizes = [f"{many:,}" for many in costs]
            growths.append(Growth(f"{what}, {whom}", sizes, list(costs.values()), floor=floor))
    return growths


def ask_of_each(service: Service) -> None:
    """What is asked for the first time is encoded then; that is another cost."""
    with service.awake(), closing(HTTPConnection("127.0.0.1", service.port)) as asker:
        before_s = service.cpu_s()
        for number in range(service.many):
            asker.request("GET", BARS.format(symbol(number)), headers={"X-API-Key": service.key})
            asker.getresponse().read()
        first_us = (service.cpu_s() - before_s) / service.many * 1e6
    say(f"{service.name}: 500 bars for the first time {first_us:,.0f} µs each, ")
    say(f"{resident_mb(service.pid):,.0f} MB when all have been asked for\n")


def cost_us(service: Service, script: Path, seconds: int) -> float:
    load = measure_load(service, "", service.key, seconds, CONNECTIONS, "-s", str(script))
    return 1e6 / load.per_cpu_second
