from __future__ import annotations

from tests.operations.copying.conftest import backup as backup
from tests.operations.copying.conftest import filled as filled
from tests.operations.copying.conftest import new_database as new_database
from tests.operations.copying.conftest import postgresql as postgresql
