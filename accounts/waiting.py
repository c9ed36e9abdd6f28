"""Waiting for a database that is still starting."""

from __future__ import annotations

import logging
import time

import psycopg
from django.db import OperationalError, connection

logger = logging.getLogger(__name__)

ASK_AGAIN_S, TELL_AGAIN_S = 1.0, 30.0

# What is said by one that is not there yet. All else, such as a wrong password, stays as it is.
PASSES = (
    "refused",
    "timeout",
    "timed out",
    "starting up",
    "shutting down",
    "recovery",
    "accepting connections",
    "too many",
    "closed the connection",
    "unreachable",
    "No such file",
    "reset by peer",
    "Temporary failure",
    "remaining connection slots",
)


def wait_for_database(who: str, *, whatever_it_says: bool = False) -> None:
    """Past the pool, whose own attempts come further and further apart. A refusal that stays is raised."""
    if connection.vendor != "postgresql":
        return
    wishes = {name: wish for name, wish in connection.get_connection_params().items() if name != "pool"}
    told_at = float("-inf")
    while True:
        try:
            psycopg.connect(**wishes).close()
        except psycopg.OperationalError as error:
            reason = str(error).strip().splitlines()[0]
            if not whatever_it_says and not any(words in str(error) for words in PASSES):
                raise OperationalError(reason) from error
            if time.monotonic() - told_at > TELL_AGAIN_S:
                told_at = time.monotonic()
                logger.warning("%s waits for the database: %s", who, reason)
            time.sleep(ASK_AGAIN_S)
        else:
            return
