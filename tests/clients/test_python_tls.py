"""The waiting client over TLS: one thread reads and writes a connection, or what is sent may be lost."""

from __future__ import annotations

import ssl
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tickwire import Client

from tests.certificates import make_certificate
from tests.client import Server, drop_sockets
from tests.contract.streams.ticker import ticking
from tests.factories import make_account, make_instrument, make_key, make_tier
from tests.programs.tls_front import tls_front

pytestmark = pytest.mark.served

SYMBOL = "EURUSD"
USES = ((ssl.SSLSocket, ("send", "recv")), (ssl.SSLObject, ("write", "read")))


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> dict[object, set[str]]:
    """Which threads have used each connection, whose object stays: another would get its place in memory."""
    used: dict[object, set[str]] = defaultdict(set)

    def noting(use: Callable[..., Any]) -> Callable[..., Any]:
        def note_and_use(self: Any, *given: Any) -> Any:
            used[self].add(threading.current_thread().name)
            return use(self, *given)

        return note_and_use

    for kind, names in USES:
        for name in names:
            monkeypatch.setattr(kind, name, noting(getattr(kind, name)))
    return used


@pytest.fixture
def url(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    key, certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with tls_front(server.port, key, certificate) as address:
        yield address


def test_stream_over_tls_goes_on_and_is_one_thread_s(
    server: Server, url: str, threads: dict[object, set[str]]
) -> None:
    make_instrument(SYMBOL)
    key = make_key(make_account(tier=make_tier("roomy", streams=10)))
    with Client(key, url) as client, ticking(server) as ticker:
        ticker(SYMBOL)
        watched = client.watch(SYMBOL)
        heard = [next(watched)["seq"]]
        drop_sockets(server)
        ticker(SYMBOL)
        heard.append(next(watched)["seq"])
        watched.close()
    assert heard == [heard[0], heard[0] + 1]
    # Two connections, with both their ends.
    assert len(threads) >= 2
    assert {len(names) for names in threads.values()} == {1}
    assert not [each for each in threading.enumerate() if each.name.startswith("stream of")]
