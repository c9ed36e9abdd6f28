from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.databases.emptying import empty_database

from .rows import Rows, one_of_each


@pytest.fixture(scope="module")
def rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Rows]:
    """One of each for a file whose tests take none for the only one."""
    with django_db_blocker.unblock():
        yield one_of_each()
        empty_database()
