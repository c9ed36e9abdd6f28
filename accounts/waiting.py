"""Waiting for a database that is still starting."""

from __future__ import annotations

import logging
import time

import psycopg
from django.db import connection

logger = logging.getLogger(__name__)

ASK_AGAIN_S, TELL_AGAIN_S = 1.0, 30.0


def wait_for_database(who: str) -> None:
    """Past the pool, whose own attempts come further and further apart."""
    if connection.vendor != "postgresql":
        return
    wishes = {name: wish for name, wish in connection.get_connection_params().items() if name != "pool"}
    told_at = float("-inf")
    while True:
        try:
            psycopg.connect(**wishes).close()
        except psycopg.OperationalError as error:
            if time.monotonic() - told_at > TELL_AGAIN_S:
                told_at = time.monotonic()
                reason = str(error).strip().splitlines()[0]
                logger.warning("%s waits for the database: %s", who, reason)
            time.sleep(ASK_AGAIN_S)
        else:
            return
