import asyncio
import socket
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any, NamedTuple

import uvicorn
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from django.db import connection

from core.addresses import host_is_loopback
from core.deadlines import patient
from core.process import (
    end_on_hangup,
    feed_watchdog,
    log_uncaught,
    pending_migrations,
    refuse_unfinished,
    tell_ready,
    wait_for_database,
)
from core.program import command
from demo.login import fresh_link
from demo.market import line_on
from demo.past import DemoMakers
from demo.people import demo_keys
from demo.seeding import begin, is_there, makers_needed, remove
from instruments.models import Instrument
from market.runtime import bus_url, market
from market.store.lease import wait_until_alone
from pages.static_files import collect
from serving.http.connections import raise_limit
from serving.metrics.collection import FigureCollection
from serving.server import UVICORN_OPTIONS, Server, shown_address, take_port
from serving.workers.supervisor import Supervisor

GRACE_S = round(patient(10))
WATCHDOG_S = patient(10)


class Command(BaseCommand):
    help = "Serve REST, pages and streams with uvicorn. Outside production it prepares the database first."
    requires_system_checks = "__all__"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.HOST, help="Default: HOST, or 127.0.0.1.")
        parser.add_argument("--port", type=int, default=settings.PORT, help="Default: PORT, or 8000.")
        parser.add_argument(
            "--workers", type=int, default=1, help="Processes; more than one needs REDIS_URL."
        )

    def handle(self, *, host: str, port: int, workers: int, **options: Any) -> None:
        if workers < 1:
            raise CommandError("--workers is how many processes serve: 1 or more.")
        if workers > 1 and not settings.REDIS_URL:
            raise CommandError(
                "Several processes share their limits through Redis: set REDIS_URL, or use one worker."
            )
        log_uncaught()
        listener = take_port(host, port)
        self.stdout.write(raise_limit())
        makers = None
        try:
            prepared = prepare(self.stdout)
            makers = DemoMakers(self.stdout, prepared.makers)

            def announce() -> None:
                self.stdout.write(banner(host, listener.getsockname()[1], prepared))
                self.stdout.flush()
                tell_ready()
                makers.start()

            self.serve(listener, workers, announce, makers.stop)
        except KeyboardInterrupt:
            self.stdout.write("\nStopped.")
        finally:
            if makers is not None:
                makers.stop()
            listener.close()

    def serve(
        self, listener: socket.socket, workers: int, announce: Callable[[], None], stop: Callable[[], None]
    ) -> None:
        config = uvicorn.Config(
            "config.asgi:application",
            workers=workers,
            loop="uvloop",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.TRUSTED_PROXIES),
            forwarded_allow_ips=settings.TRUSTED_PROXIES or None,
            timeout_graceful_shutdown=GRACE_S,
            **UVICORN_OPTIONS,
        )
        if workers > 1:
            stops_within_s = settings.DRAIN_S + max(GRACE_S, settings.STOP_WITHIN_S)
            Supervisor(config, listener, announce, stops_within_s, FigureCollection()).run()
            return

        def serving() -> None:
            announce()
            self.watchdog = asyncio.create_task(feed_watchdog(WATCHDOG_S), name="watchdog")

        end_on_hangup()
        # After SIGTERM it does not return: it ends by that signal, as a supervisor expects.
        server = Server(config, on_serving=serving, on_stopping=stop)
        server.run([listener])
        if not server.started:
            raise CommandError("The service did not start; the lines above say why.")


class Prepared(NamedTuple):
    staff_link: str | None = None
    """For the demo's staff."""
    makers: int = 0
    """How many processes the rest of the demo is work for."""
    is_empty: bool = False
    """The database has no instruments and no demo yet."""


def prepare(out: OutputWrapper) -> Prepared:
    """Migrates and fills the database as far as the service needs it to begin. In production that is up to
    the operator."""
    if settings.PRODUCTION:
        wait_for_database("The service")
    refuse_unfinished()
    if not bus_url():
        wait_until_alone()
    is_behind = bool(pending_migrations())
    if settings.PRODUCTION:
        if is_behind:
            raise CommandError(f"The database is behind the code. Run `{command('migrate')}` first.")
        if collect():
            out.write("Collected the static files of this version.")
        return as_it_is()
    if is_behind:
        out.write("Preparing the database")
        call_command("migrate", verbosity=0, interactive=False)
    if settings.DEMO:
        begin(line_on(out))
    elif is_there():
        # A killed process may have acknowledged ticks: their numbers go when the demo's quotes do.
        asyncio.run(market.write_remains())
        remove(line_on(out))
    prepared = Prepared(fresh_link(), makers_needed()) if settings.DEMO else as_it_is()
    connection.close()
    return prepared


def as_it_is() -> Prepared:
    return Prepared(is_empty=not (Instrument.objects.exists() or get_user_model().objects.exists()))


BANNER = """
  Tickwire serves on {address}

{first}
  Documentation  {address}/docs/api and {address}/docs/streams
  Your keys      {address}/settings/keys
  Back office    {address}/admin/

{more}
  Ctrl-C stops it.
"""
TERMINAL_FIRST = "  Terminal       {address}/"
FRONT_PAGE_FIRST = """\
  Front page     {address}/
  Terminal       {address}/terminal{for_whom}"""
DEMO = """\
  Demo keys
{keys}
  Demo staff login, once, within 15 minutes
    {login}
    {another}    prints another

  Try it:
    curl -H "X-API-Key: {pro_key}" {address}/api/market/BTCUSD/quote
"""
NO_LOGIN = "none: one of your users has the name of the demo's staff"
FROM_HERE_ONLY = """
  The demo keys and login work from this machine only, at http://127.0.0.1.
"""
FIRST_STEPS = """\
  It starts empty. To begin:
    {load}     the shipped instruments, or your CSV
    {superuser}      a login for the back office
    {key}  an API key
"""
SEPARATE_ENGINE = """
  Prices come over Redis from an engine beside this: {engine}
"""


DEFAULT_PORT = 8000


def banner(host: str, port: int, prepared: Prepared) -> str:
    """What a newcomer needs to know."""
    address = shown_address(host, port)
    more = _first_steps() if prepared.is_empty else ""
    if settings.DEMO:
        more = _demo(address, port, prepared.staff_link)
    if settings.DEMO and not host_is_loopback(host):
        more += FROM_HERE_ONLY
    if bus_url():
        more += SEPARATE_ENGINE.format(engine=command("run_engine"))
    return BANNER.format(first=_first_page(address), address=address, more=more)


def _first_page(address: str) -> str:
    if settings.DEMO:
        return TERMINAL_FIRST.format(address=address)
    for_whom = "" if settings.PUBLIC_TERMINAL else "  (after login)"
    return FRONT_PAGE_FIRST.format(address=address, for_whom=for_whom)


def _demo(address: str, port: int, staff_link: str | None) -> str:
    keys = demo_keys()
    shown = "\n".join(f"    {tier:<8} {key}" for tier, key in keys.items())
    login = f"{address}{staff_link}" if staff_link else NO_LOGIN
    # Another shell may have another PORT, or none.
    another = command("demo_login" if port == DEFAULT_PORT else f"demo_login --port {port}")
    return DEMO.format(keys=shown, login=login, pro_key=keys["pro"], address=address, another=another)


def _first_steps() -> str:
    steps = {"load": "load_instruments", "superuser": "createsuperuser", "key": "issue_key YOUR_NAME"}
    # Outside production, a command takes instruments for the demo's unless it has DEMO=0 too.
    without_demo = "" if settings.PRODUCTION else "DEMO=0 "
    return FIRST_STEPS.format(**{name: without_demo + command(words) for name, words in steps.items()})
