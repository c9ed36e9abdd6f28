from __future__ import annotations

from collections.abc import Iterator

import pytest
import time_machine
from pytest_django import DjangoDbBlocker

from market import runtime as market
from tests.factories import NOON

from .postgresql import clear, in_place, migrate, own_server


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """The wall clock stands at noon until a test moves it."""
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture
def own_market() -> Iterator[None]:
    """The running service's market, left empty as it was found."""
    yield
    market.prices.clear()


@pytest.fixture(scope="session")
def postgresql(django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The address of a migrated PostgreSQL."""
    with own_server() as url:
        with django_db_blocker.unblock(), in_place(url):
            migrate()
        yield url


@pytest.fixture
def on_postgresql(postgresql: str, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """It is the default database, and empty."""
    with django_db_blocker.unblock(), in_place(postgresql):
        yield postgresql
        clear()
