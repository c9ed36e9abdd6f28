"""The server that the contract is asked of: the one that ships, or REST_ON=ordinary or daphne; which tests
cannot hold on daphne, and why: the one list."""

from __future__ import annotations

import os
from collections.abc import Callable

from serving.http.short_path import STATE_NAME
from tests.client import Server
from tests.contract.streams.daphne_server import DaphneServer


class OrdinaryServer(Server):
    """Without the short path."""

    def __enter__(self) -> OrdinaryServer:
        super().__enter__()
        # Each connection takes it from there.
        del self._server.lifespan.state[STATE_NAME]
        return self


CHOSEN = os.environ.get("REST_ON", "")
SERVERS: dict[str, Callable[[], Server]] = {"": Server, "ordinary": OrdinaryServer, "daphne": DaphneServer}
make_server = SERVERS[CHOSEN]

COUNTED = "statements are counted from where uvicorn begins a request"

EXCEPTED: dict[str, str] = {
    "test_publishers.py::test_unchanged_scorecard_costs_one_query_and_a_new_result_five_more": COUNTED,
    "test_history.py::test_page_costs_a_query_for_every_thousand_candles_and_one_more": COUNTED,
    "test_queries.py::test_cold_key_costs_one_query_and_at_most_a_look_at_the_events": COUNTED,
}
"""What has to fail there, by the name of the test, with its file."""

LEFT_OUT: dict[str, str] = {
    "test_downloads.py::test_one_account_may_have_so_many_downloads_at_once": "it takes a whole body at once",
    "test_downloads.py::test_slow_readers_hold_nobody_up_and_nothing_stays_of_those_who_leave": (
        "it takes a whole body at once"
    ),
    "test_file.py::test_damaged_file_breaks_off_before_its_end_and_is_not_begun_again": (
        "it keeps the connection"
    ),
    "test_history_connections.py::test_page_is_read_no_further_once_its_client_hangs_up": "it does not tell",
    "test_history_connections.py::test_page_whose_database_fails_breaks_off": "it keeps the connection",
    "test_queries.py::test_queries_of_a_warm_path": COUNTED,
    "test_request_log.py::test_what_is_no_request_is_logged": "daphne waits for more of it",
}
"""What would fail in some of its cases, or wait."""
