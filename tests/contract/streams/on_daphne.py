"""Which tests of the streams' contract cannot hold on daphne, and why: the one list."""

from __future__ import annotations

import os

IS_CHOSEN = os.environ.get("STREAMS_ON") == "daphne"

NO_PRESSURE = "daphne takes whatever it is given: nobody is seen to be slow, so nobody gets 4430 or less"
OWN_CLOSES = "daphne answers this before the application hears of it, and hangs up without a code"
OWN_PINGS = "daphne answers pings itself: the application never hears of them, and nobody is sent away"

EXCEPTED: dict[str, str] = {
    "test_restart.py::test_restart_is_announced_and_closes_with_1012": "daphne just hangs up",
    "test_slow.py::test_who_does_not_read_is_closed_with_4430_and_its_place_is_free_at_once": NO_PRESSURE,
    "test_slow.py::test_latest_gives_the_newest_price_and_says_how_many_were_left_out": NO_PRESSURE,
    "test_one_socket.py::test_what_waits_for_a_slow_reader_counts_for_all_its_streams_together": NO_PRESSURE,
    "test_refusals.py::test_message_above_16_kib_closes_with_1009": "daphne has no 1009: 4400",
    "test_refusals.py::test_text_that_is_no_utf8_closes_with_1007": OWN_CLOSES,
    "test_refusals.py::test_twenty_messages_at_once_are_taken_and_more_are_not[pings of the protocol]": (
        OWN_PINGS
    ),
}
"""By the name of the test, with its file, and the case where the others hold."""
