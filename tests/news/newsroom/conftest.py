from __future__ import annotations

import pytest

from tests.accounts.back_office.office import Office
from tests.factories import make_user


@pytest.fixture
def office(db: None) -> Office:
    return Office(make_user("boss", is_staff=True, is_superuser=True))
