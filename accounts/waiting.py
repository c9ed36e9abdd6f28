"""Waiting for a database that is still starting."""

from __future__ import annotations

import logging
import time

import psycopg
from django.db import OperationalError, connection

logger = logging.getLogger(__name__)

ASK_AGAIN_S, TELL_AGAIN_S = 1.0, 30.0


# What it says to who will never be let in. Only then waiting is no use.
NEVER = ("authentication failed", "does not exist", "no pg_hba.conf entry")


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
            if not whatever_it_says and any(words in reason for words in NEVER):
                raise OperationalError(reason) from error
            if time.monotonic() - told_at > TELL_AGAIN_S:
                told_at = time.monotonic()
                logger.warning("%s waits for the database: %s", who, reason)
            time.sleep(ASK_AGAIN_S)
        else:
            return
