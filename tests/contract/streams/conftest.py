"""One service for a whole file; each test has an account, a key and an instrument of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.conf import settings

from accounts.models import Account
from tests.client import Server
from tests.contract.streams.client import MARKET, ORDERFLOW, Socket
from tests.contract.streams.ticker import Ticker, ticking
from tests.factories import make_account, make_instrument, make_key, make_tier

# In one process there is no bus between engine and clients.
collect_ignore = () if settings.REDIS_URL else ("test_shared_bus.py",)
_numbers = itertools.count(1)
Open = Callable[..., Socket]


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


@pytest.fixture(params=[MARKET, ORDERFLOW])
def path(request: pytest.FixtureRequest) -> str:
    """What holds for one holds for both."""
    chosen: str = request.param
    return chosen


@pytest.fixture
def opened(service: Server) -> Iterator[Open]:
    """Opens sockets, and closes them in the end."""
    with ExitStack() as stack:

        def open_socket(path: str = MARKET, **options: Any) -> Socket:
            return stack.enter_context(Socket(service, path, **options))

        yield open_socket
