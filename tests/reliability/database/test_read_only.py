"""A database that accepts no changes: what needs one is refused for a while, and the rest is answered."""

from __future__ import annotations

from pathlib import Path

import httpx
import psycopg
import pytest

from tests.factories import make_account, make_instrument, make_key, make_tiers
from tests.patience import wait_until
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation

SWITCH = "ALTER DATABASE postgres SET default_transaction_read_only = on"


@pytest.mark.usefixtures("rows")
@pytest.mark.row("8", "503, never 500")
def test_an_analysis_on_a_read_only_database_returns_503_with_the_reason(tmp_path: Path) -> None:
    database = PrivatePostgres(tmp_path)
    with database.running():
        installation = Installation(tmp_path, database.url)
        with installation.orm():
            make_tiers()
            make_instrument("EURUSD")
            key = make_key(make_account())
        with installation.serve(1) as (server,):
            assert server.ask("/api/symbols", key).status_code == 200
            with psycopg.connect(database.url, autocommit=True) as connection:
                connection.execute(SWITCH)
            database.break_connections()
            answers: list[httpx.Response] = []

            def names_the_reason() -> bool:
                """Each thread of the server learns of its own broken connection first."""
                answers.append(server.ask("/api/analysis/EURUSD", key))
                return "accepts no changes" in answers[-1].json()["error"]["message"]

            wait_until(names_the_reason)
            wait_until(lambda: server.ask("/api/signals", key).status_code == 200)
    assert {(answer.status_code, answer.json()["error"]["code"]) for answer in answers} == {
        (503, "overloaded")
    }
    assert answers[-1].headers["Retry-After"] == "5"
