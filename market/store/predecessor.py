"""Without Redis one process serves a database: two would each acknowledge ticks that the other lacks."""

import logging
import time

from django.core.management.base import CommandError
from django.db import connection

from .lease import BEAT_S, TABLE, Lease
from .process_names import place_of

logger = logging.getLogger(__name__)

# Each takes a beat's time: more than it takes to tell that a process on another machine is gone.
LOOKS = 10


def wait_until_alone() -> None:
    """Before anything is changed; the lease itself is taken later."""
    # An empty database has not even that table.
    if TABLE in connection.introspection.table_names() and (lease := Lease()).other():
        wait_for_end(lease)


def wait_for_end(lease: Lease) -> None:
    """Of the process that holds it: it may be stopping, or gone. Raises CommandError if it goes on."""
    where = ""
    for _ in range(LOOKS):
        time.sleep(BEAT_S)
        if not (writer := lease.other()):
            return
        if not where:
            where = place_of(writer)
            logger.warning("Another service runs on this data (%s): waiting for its end", where)
    raise CommandError(
        f"Another service runs on this data ({where}). Two would not know of each other's ticks and limits:"
        " stop it, give this one a folder (--data) or DATABASE_URL of its own, or set REDIS_URL for both."
    )
