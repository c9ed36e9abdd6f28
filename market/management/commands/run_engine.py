"""Runs the engine on its own, but not on a database whose migrations are behind the code."""

import asyncio
import contextlib
import logging
import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from core import process
from core.background import cancel_and_wait, first_done
from core.database import UNANSWERED
from core.events.event_feed import feed as control_events
from core.fault_log import LastingFault
from core.process import (
    end_on_hangup,
    end_within,
    feed_watchdog,
    log_uncaught,
    pending_migrations,
    refuse_unfinished,
    tell_ready,
    wait_for_database,
)
from core.program import command
from instruments.catalogue import catalogue
from market.engine.push_queue import PushQueue
from market.management.engine_health import engine_health
from market.runtime import bus_url, market
from market.store.lease import LeaseLost

logger = logging.getLogger(__name__)
# With thousands of instruments a start holds up the loop. The standby leads long before.
WATCHDOG_S = 120.0
start_waits = LastingFault(logger, "The engine cannot start, trying again")


class Command(BaseCommand):
    help = (
        "Run the market engine beside the web processes: feeds, candles, order flow. Start a second one as "
        "a standby; it takes over within seconds when the first ends."
    )
    requires_system_checks = "__all__"

    def handle(self, **options: Any) -> None:
        if not settings.REDIS_URL:
            raise CommandError(
                "The web processes hear of the market over Redis: set REDIS_URL. "
                f"Without it `{command('serve')}` runs the engine itself."
            )
        log_uncaught()
        wait_for_database("The engine")
        refuse_unfinished()
        refuse_pending_migrations()
        asyncio.run(self.run())

    async def run(self) -> None:
        ending = asyncio.Event()
        loop = asyncio.get_running_loop()

        def stop() -> None:
            end_within(settings.STOP_WITHIN_S)
            engine_health.become("stopping")
            ending.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        end_on_hangup()
        await control_events.start()
        await catalogue.load()
        await engine_health.start()
        # Whether it leads or stands by.
        tell_ready()
        watchdog = loop.create_task(feed_watchdog(WATCHDOG_S), name="watchdog")
        try:
            while not ending.is_set():
                await self.take_a_turn(ending)
        finally:
            await engine_health.stop()
            await control_events.stop()
            await cancel_and_wait(watchdog)
        self.say("Stopped.")

    async def take_a_turn(self, ending: asyncio.Event) -> None:
        """Wait for the lease, then run until somebody else has it or we are to end."""
        runner = market.separate_engine()
        self.say("Waiting for the lease: another engine may hold it.")
        engine_health.become("standby")
        await first_done(runner.stand_by(), ending.wait())
        if ending.is_set():
            await runner.stop()
            return
        engine_health.become("starting")
        try:
            # This may wait for Redis.
            await first_done(runner.start(), ending.wait(), runner.writer.lease_lost.wait())
        except (*UNANSWERED, LeaseLost) as error:
            # The database went away meanwhile. The lease ends by itself, and whoever gets it begins anew.
            start_waits.tell(error)
        if not runner.is_running:
            runner.writer.lose_lease()
            await runner.stop()
            return
        start_waits.over()
        engine_health.become("leader")
        process.freeze_startup_objects()
        push_queue = PushQueue(bus_url())
        # Ticks are acknowledged once a kill of this process would not lose them.
        serving = asyncio.create_task(push_queue.serve(runner.push, runner.bus.settle), name="market inbox")
        self.say(f"The engine runs: {len(catalogue.active())} instruments.")
        try:
            # A push that waits to be acknowledged may be the first to learn of another engine.
            with contextlib.suppress(LeaseLost):
                await first_done(runner.writer.lease_lost.wait(), ending.wait(), serving)
        finally:
            # Another engine may lead while this one hangs up.
            engine_health.become("standby")
            await runner.stop()
            await push_queue.stop()

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


def refuse_pending_migrations() -> None:
    if pending := pending_migrations():
        first, others = pending[0], len(pending) - 1
        more = f" and {others} more" if others else ""
        raise CommandError(
            f"The database is behind the code: {first.app_label}.{first.name}{more} is pending. "
            f"Run `{command('migrate')}` first."
        )
