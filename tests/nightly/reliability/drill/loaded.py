"""A whole installation with readers and writers on it, and what a fault does to them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from httpx import Response

from market.push.keys import issue_ingest_key
from tests.factories import make_account, make_instrument, make_key, make_tier, make_tiers
from tests.patience import PATIENCE_S, wait_until
from tests.reliability.services.engine_processes import RUNS, WAITS, EngineProcess, engine_process, writer_of
from tests.reliability.services.processes import Installation, http

from .damage import LIMIT, Admission, Damage
from .readers import Asker, Readers, StreamClient
from .writers import SignalSource, TickSource

SYMBOLS = [f"DRILL{number}" for number in range(4)]
# Without ticks, or they would close its signals.
SIGNALLED = "SIGNALLED"
QUOTE, COUNTED = f"/api/market/{SYMBOLS[0]}/quote", "/api/symbols"
# More within the two seconds of the shortest outage than any fault may let in.
COUNTED_A_SECOND = 100.0
CALM_S, HEARD_WITHIN_S, CAUGHT_UP_WITHIN_S = 2.0, 60.0, 10.0


class Size(NamedTuple):
    sockets: int = 100
    requests_a_second: float = 50.0
    ticks_a_second: int = 40


class LoadedInstallation:
    """Two web processes, or whatever serves on the ports, and two engines of which one runs."""

    def __init__(self, installation: Installation, ports: Sequence[int], size: Size) -> None:
        self.installation, self.ports = installation, ports
        self.engines: list[EngineProcess] = []
        self._running = ExitStack()
        with installation.orm():
            roomy = make_tier("roomy", streams=100_000, requests_per_minute=10_000_000)
            self._counted = make_tier("counted", requests_per_minute=LIMIT)
            key = make_key(make_account(tier=roomy))
            ingest_key = issue_ingest_key("desk", by="test")[1]
        self._headers = {"X-API-Key": key}
        message = {"action": "subscribe", "symbols": SYMBOLS, "api_key": key, "features": ["seq", "lag"]}
        clients = [
            StreamClient([*ports[number % len(ports) :], *ports[: number % len(ports)]], message)
            for number in range(size.sockets)
        ]
        self.quotes = Asker(ports, key, QUOTE, size.requests_a_second)
        self.counted = Asker(ports, self._new_counted_key(), COUNTED, COUNTED_A_SECOND)
        self.readers = Readers(clients, [self.quotes, self.counted])
        self.ticks = TickSource(ports, ingest_key, SYMBOLS, size.ticks_a_second)
        self.signals = SignalSource(installation, SIGNALLED)

    def measure(self, name: str, fault: Callable[[], None], limits_for_s: float = 0.0) -> Damage:
        """Limits are watched for so long after the fault: only after a whole minute is it known how much was
        let in within the worst."""
        self._begin(self._new_counted_key())
        time.sleep(CALM_S)
        fault()
        back_s = self.readers.wait_until_all_hear(HEARD_WITHIN_S)
        time.sleep(max(CALM_S, limits_for_s))
        return self._damage(name, back_s, self.counted.admission() if limits_for_s else None)

    def _begin(self, counted_key: str) -> None:
        """What was admitted before another fault says nothing of this one."""

        def begin() -> None:
            self.readers.forget()
            self.counted.use(counted_key)
            self.ticks.failed_at = []

        self.readers.call(begin)
        self._refused_before = Counter(self.ticks.refused)

    def _new_counted_key(self) -> str:
        with self.installation.orm():
            return make_key(make_account(tier=self._counted))

    def _damage(self, name: str, back_s: float, admission: Admission | None) -> Damage:
        clients = self.readers.clients
        for client in clients:
            client.take_gaps()
        lost, doubled = self._ticks()
        failed_at = [*self.quotes.failed_at, *self.ticks.failed_at]
        return Damage(
            name,
            sockets=len(clients),
            missed=sum(client.missed for client in clients),
            doubled=sum(client.doubled for client in clients),
            gaps=sum(client.gaps > 0 for client in clients),
            stale=sum(client.was_told_stale for client in clients),
            ticks_lost=lost,
            ticks_doubled=doubled,
            ticks_refused=dict(self.ticks.refused - self._refused_before),
            signals_lost=self.signals.lost(),
            ledger_fault=self.signals.ledger_fault(),
            silent_s=max(client.silent_s for client in clients),
            unanswered_s=self.quotes.unanswered_s,
            failing_s=max(failed_at) - min(failed_at) if failed_at else 0.0,
            back_s=back_s,
            statuses=dict(self.quotes.statuses),
            admission=admission,
        )

    def _ticks(self) -> tuple[int, int]:
        """Acknowledged and not there, and there more than once, once the database has caught up."""
        with self.ticks.at_rest() as acknowledged:
            ends_s = time.monotonic() + CAUGHT_UP_WITHIN_S
            while True:
                taken = self.ticks.taken(self.installation)
                found = [acknowledged[symbol] - taken[symbol] for symbol in taken]
                if not any(found) or time.monotonic() > ends_s:
                    break
                time.sleep(0.2)
            # What a fault took or doubled counts once.
            acknowledged.update({symbol: -each for symbol, each in zip(taken, found, strict=True)})
        return sum(max(0, each) for each in found), sum(max(0, -each) for each in found)

    def ask(self, url: str) -> Response:
        return http.get(url, headers=self._headers)

    # The engines

    def start_engine(self, **changes: str) -> None:
        context = engine_process(self.installation, len(self.engines), changes)
        engine = self._running.enter_context(context)
        self.engines.append(engine)
        wait_until(lambda: engine.said(RUNS if len(self.engines) == 1 else WAITS))

    @property
    def leader(self) -> EngineProcess:
        pid = writer_of(self.installation)
        return next(engine for engine in self.engines if engine.pid == pid)

    def close(self) -> None:
        self._running.close()


def furnish(installation: Installation) -> None:
    """What a process reads when it starts."""
    with installation.orm():
        make_tiers()
        for symbol in (*SYMBOLS, SIGNALLED):
            make_instrument(symbol)


@contextmanager
def under_load(
    installation: Installation,
    size: Size,
    engines: int = 2,
    ports: Sequence[int] = (),
    environment: dict[str, str] | None = None,
    second: dict[str, str] | None = None,
) -> Iterator[LoadedInstallation]:
    """With web processes of its own unless others serve what was furnished; `second` changes one of them."""
    changes = environment or {}
    with ExitStack() as running:
        if not ports:
            furnish(installation)
            first = running.enter_context(installation.web_process(0, **changes))
            other = running.enter_context(installation.web_process(0, **changes, **(second or {})))
            ports = [first.port, other.port]
        made = LoadedInstallation(installation, ports, size)
        running.callback(made.close)
        for _ in range(engines):
            made.start_engine(**changes)
        with made.ticks, made.readers, made.signals:
            made.readers.wait_until_all_hear(PATIENCE_S)
            yield made
