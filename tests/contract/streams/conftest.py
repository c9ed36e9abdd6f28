"""One service for a whole file; each test has an account, a key and an instrument of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.conf import settings

from accounts.models import Account
from market.streams.protocol.messages import KINDS
from tests.client import Server
from tests.contract.conftest import forget_redis
from tests.factories import make_account, make_instrument, make_key, make_tier

from . import on_daphne
from .client import MARKET, Socket
from .daphne_server import DaphneServer
from .ticker import Ticker, ticking

# In one process there is no bus between engine and clients; what daphne holds of a socket is its own affair.
collect_ignore = (
    *(() if settings.REDIS_URL else ("test_shared_bus.py",)),
    *(("test_nothing_left.py",) if on_daphne.IS_CHOSEN else ()),
)
_numbers = itertools.count(1)
Open = Callable[..., Socket]


make_server: Callable[[], Server] = DaphneServer if on_daphne.IS_CHOSEN else Server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is excepted has to fail, or it is no exception."""
    for item in items if on_daphne.IS_CHOSEN else ():
        for name in {getattr(item, "originalname", item.name), item.name}:
            if reason := on_daphne.EXCEPTED.get(f"{item.path.name}::{name}"):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(scope="module")
def shared_server(db: None) -> Iterator[Server]:
    """What a test leaves behind here, the others of its file meet."""
    forget_redis()
    with make_server() as running:
        yield running


@pytest.fixture
def server(transactional_db: None) -> Iterator[Server]:
    """One for a test that ends it."""
    forget_redis()
    with make_server() as running:
        yield running


@pytest.fixture(scope="module")
def ticker(shared_server: Server) -> Iterator[Ticker]:
    with ticking(shared_server) as made:
        yield made


@pytest.fixture
def service(ticker: Ticker, shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
def account(service: Server) -> Account:
    return make_account(tier=make_tier("roomy", streams=10))


@pytest.fixture
def key(account: Account) -> str:
    return make_key(account)


@pytest.fixture
def symbol(service: Server) -> str:
    """An instrument that nobody has sent a tick of."""
    return make_instrument(f"TEST{next(_numbers)}").symbol


@pytest.fixture(params=[kind.path for kind in KINDS if kind.is_numbered])
def path(request: pytest.FixtureRequest) -> str:
    """What holds for one numbered stream holds for all."""
    chosen: str = request.param
    return chosen


@pytest.fixture(params=[kind.path for kind in KINDS if kind.is_numbered and not kind.has_timeframes])
def tick_path(request: pytest.FixtureRequest) -> str:
    """What holds of a stream that each tick goes to."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def opened(service: Server) -> Iterator[Open]:
    """Opens sockets, and closes them in the end."""
    with ExitStack() as stack:

        def open_socket(path: str = MARKET, **options: Any) -> Socket:
            return stack.enter_context(Socket(service, path, **options))

        yield open_socket
