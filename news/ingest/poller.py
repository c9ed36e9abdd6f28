"""Polls what is due, beside the requests. Every web process does; a source is polled by who claims it."""

from __future__ import annotations

import asyncio
import logging

from django.db import Error
from django.utils import timezone

from accounts.exceptions import Overloaded
from accounts.threads import in_thread

from .claims import claim_due
from .polling import poll

logger = logging.getLogger(__name__)

LOOK_S = 5.0
# At once, so that one slow server keeps few others waiting and a hundred sources no thread of the API.
AT_ONCE = 4


async def keep_polling() -> None:
    while True:
        try:
            claimed = await in_thread(claim_due, timezone.now(), AT_ONCE)
            await asyncio.gather(*(poll(source) for source in claimed))
        except (Error, Overloaded) as error:
            claimed = []
            logger.warning("The news wait for the database: %s", error)
        except Exception:  # noqa: BLE001 - the top of a task: what broke is logged and tried again
            claimed = []
            logger.exception("Polling the news broke and goes on")
        if len(claimed) < AT_ONCE:
            await asyncio.sleep(LOOK_S)
