"""A machine is cut off from Redis, which comes back empty, and the engine does not remember all that this
machine has not heard: its clients are told of a gap, and fill it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.nightly.reliability.drill.damage import harm_of
from tests.nightly.reliability.drill.faults import Servers
from tests.nightly.reliability.drill.loaded import SYMBOLS, LoadedInstallation, Size, under_load
from tests.patience import wait_until
from tests.reliability.conftest import Tell
from tests.reliability.services.cable import Cable
from tests.reliability.services.engine_processes import last_number
from tests.reliability.services.private_servers import PrivatePostgres, PrivateRedis
from tests.reliability.services.processes import Installation

SIZE = Size(sockets=10, requests_a_second=10.0)
# Of about twenty entries a second: whoever is less than a second behind misses nothing.
REMEMBERED = 20


class CutOff:
    """Two machines, of which the second reaches Redis by a cable."""

    def __init__(self, directory: Path) -> None:
        self.servers = Servers(PrivatePostgres(directory), PrivateRedis(directory))
        self.cable = Cable(self.servers.redis.port)
        self.installation = Installation(directory, self.servers.database.url, self.servers.redis.url)
        self.installation.engine_program = ("-m", "tests.nightly.reliability.engine.run_forgetful")

    @contextmanager
    def running(self) -> Iterator[LoadedInstallation]:
        second = {
            "REDIS_URL": self.servers.redis.url.replace(str(self.servers.redis.port), str(self.cable.port))
        }
        with ExitStack() as running:
            running.callback(self.cable.close)
            for name in ("database", "redis"):
                self.servers.start(name)
                running.callback(self.servers.stop, name)
            yield running.enter_context(
                under_load(
                    self.installation,
                    SIZE,
                    engines=1,
                    second=second,
                    environment={"REMEMBERED": str(REMEMBERED)},
                )
            )

    def fail(self) -> None:
        """Redis is killed once the second machine lacks far more than the engine remembers."""
        with self.cable.cut():
            before = last_number(self.servers.redis.url)
            wait_until(lambda: last_number(self.servers.redis.url) > before + 3 * REMEMBERED)
            self.servers.redis.kill()
            self.servers.stop("redis")
            self.servers.start("redis")


def ticks_in_candles(loaded: LoadedInstallation, port: int) -> dict[str, int]:
    """By symbol, as the server at this port answers."""
    url = f"http://127.0.0.1:{port}/api/market/{{}}?timeframe=1m&bars=500"
    answers = {symbol: loaded.ask(url.format(symbol)).json() for symbol in SYMBOLS}
    return {
        symbol: round(sum(candle["volume"] for candle in answer["ohlcv"]))
        for symbol, answer in answers.items()
    }


@pytest.mark.row(
    "7", "clients that fall behind the engine's memory are notified of a gap; nothing lost without notice"
)
def test_clients_are_notified_of_a_gap_and_can_fill_it(tmp_path: Path, tell: Tell) -> None:
    cut_off = CutOff(tmp_path)

    def cut_sockets() -> None:
        for client in loaded.readers.clients:
            if client.session is not None:
                client.session.transport.abort()

    with cut_off.running() as loaded:
        damage = loaded.measure("Redis came back empty", cut_off.fail)
        of_second = loaded.readers.clients[1::2]
        assert all(client.gaps for client in of_second)
        assert harm_of(damage) == []
        # The candles of both have every tick that was acknowledged: also those that came in no message.
        with loaded.ticks.at_rest() as acknowledged:
            first, second = loaded.ports
            wait_until(lambda: ticks_in_candles(loaded, first) == acknowledged)
            wait_until(lambda: ticks_in_candles(loaded, second) == acknowledged)
        # The places that came with the gap are as good as any other.
        returned = loaded.measure("cut", lambda: loaded.readers.call(cut_sockets))
        assert all(client.returns for client in loaded.readers.clients)
        assert (returned.gaps, harm_of(returned)) == (0, [])
    tell(f"notified of a gap: {damage.gaps} of {damage.sockets}; lost without notice: {damage.missed}")
    tell(f"acknowledged but in no candle: 0 of {acknowledged.total()}")
