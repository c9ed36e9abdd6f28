"""What is logged of requests: refusals, slow ones and pages; successes of the API when they are asked for."""

import logging
import math
from collections.abc import Mapping
from typing import NamedTuple

from django.conf import settings

from core.addresses import network_of

from .sampled import Rate, SampledLog

logger = logging.getLogger("accounts.access")

# Some 25 MB a day for each kind of refusal at most, however many strangers there are.
refused = SampledLog(logger, logging.INFO, Rate(burst=5, a_second=0.1), Rate(burst=50, a_second=1))
slow = SampledLog(logger, logging.WARNING, Rate(burst=5, a_second=0.1), Rate(burst=50, a_second=1))
visits = SampledLog(logger, logging.INFO, Rate(burst=50, a_second=1), Rate(burst=200, a_second=5))
suspicious = SampledLog(logger, logging.WARNING, Rate(burst=5, a_second=0.1), Rate(burst=5, a_second=0.1))
SAMPLED = (refused, slow, visits, suspicious)
LONGEST_TEXT = 200


class Served(NamedTuple):
    method: str
    path: str
    route: str
    status: int
    took_s: float
    request_id: str
    address: str
    who: Mapping[str, object] = {}
    """The account and its key, or the user."""
    code: str = ""
    reason: str = ""
    """Of a page that Django refused, such as a missing CSRF token."""


class LoggedSuccesses:
    """Which successes of the API are logged. The settings are read once they are set, and not for each
    answer, because that takes longer than most of what is done for it."""

    are_all = False
    slower_than_s = math.inf

    def read_settings(self, **changed: object) -> None:
        self.are_all = settings.ACCESS_LOG
        slow_ms = settings.SLOW_REQUEST_MS
        self.slower_than_s = slow_ms / 1000 if slow_ms > 0 else math.inf


logged_successes = LoggedSuccesses()


def is_slow(took_s: float) -> bool:
    return 0 < settings.SLOW_REQUEST_MS <= took_s * 1000


def log_request(served: Served, *, is_page: bool = False) -> None:
    # The query string stays out of the log: somebody may have put a key into it.
    path = shown(served.path)
    text = f"{served.method} {path} {served.status}"
    ms = round(served.took_s * 1000, 1)
    fields = served._asdict() | {"path": path, "ms": ms, **served.who}
    for name in ("took_s", "who", *(name for name in ("code", "reason") if not fields[name])):
        del fields[name]
    caller = str(served.who.get("account") or network_of(served.address))
    if is_slow(served.took_s):
        slow.tell(f"slow {served.route}", caller, text, slow=True, **fields)
    elif served.status >= 400:
        refused.tell(f"{served.status} {served.code or 'page'}", caller, text, **fields)
    elif is_page:
        visits.tell("pages", caller, text, **fields)
    elif settings.ACCESS_LOG:
        logger.info(text, extra=fields)


def shown(text: str) -> str:
    """Cut, and with nothing in it that moves a terminal's cursor."""
    return ascii(text[:LONGEST_TEXT])[1:-1]


def log_refusal(kind: str, address: str, text: str, **fields: object) -> None:
    """Of what was refused before it was a request, or on a socket."""
    refused.tell(kind, network_of(address), text, address=address, **fields)
