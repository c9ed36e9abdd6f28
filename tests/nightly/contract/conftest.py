from __future__ import annotations

from tests.contract.conftest import db as db
from tests.contract.conftest import patience as patience
from tests.contract.conftest import shared as shared
from tests.contract.conftest import shared_server as shared_server
