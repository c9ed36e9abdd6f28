import asyncio

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, OutputWrapper
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from core.addresses import host_is_loopback
from core.process import wait_for_database
from demo.instruments import Progress
from demo.login import fresh_link
from demo.people import demo_keys
from demo.seeding import is_there, remove, seed
from market.runtime import market
from serving.server import shown_address


def prepare(out: OutputWrapper) -> str | None:
    """Bring the database to where the service can start, which in production is up to the operator. Returns
    the link for the demo's staff."""
    if settings.PRODUCTION:
        wait_for_database("The service")
    is_behind = bool(_pending())
    if settings.PRODUCTION:
        if is_behind:
            raise CommandError("The database is behind the code. Run `manage.py migrate` first.")
        return None
    if is_behind:
        out.write("Preparing the database")
        call_command("migrate", verbosity=0, interactive=False)
    if settings.DEMO:
        seed(_line(out))
    elif is_there():
        # Ticks that a killed process had acknowledged: their numbers end with the demo's quotes.
        asyncio.run(market.write_remains())
        remove(_line(out))
    staff_link = fresh_link() if settings.DEMO else None
    connection.close()
    return staff_link


def _pending() -> list[object]:
    executor = MigrationExecutor(connection)
    return list(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def _line(out: OutputWrapper) -> Progress:
    """One line that changes where somebody watches, a line each where nobody does."""

    def write(text: str) -> None:
        if out.isatty():
            out.write(f"\r\033[K{text}", ending="")
        else:
            out.write(text)
        out.flush()

    return write


def banner(host: str, port: int, staff_link: str | None = None) -> str:
    """What a newcomer needs, once."""
    address = shown_address(host, port)
    lines = [
        "",
        f"  Tickwire serves on {address}",
        "",
        f"  Documentation  {address}/docs/api and {address}/docs/streams",
        f"  Your keys      {address}/settings/keys",
        f"  Back office    {address}/admin/",
        "",
        *(_demo(address, staff_link, host_is_loopback(host)) if settings.DEMO else _first_steps()),
        *(_separate_engine() if settings.REDIS_URL else ()),
        "",
        "  Ctrl-C stops it.",
        "",
    ]
    return "\n".join(lines)


def _demo(address: str, staff_link: str | None, stays_here: bool) -> list[str]:
    keys = demo_keys()
    lines = ["  Demo keys", *(f"    {tier:<8} {key}" for tier, key in keys.items())]
    lines += [
        *_staff_login(address, staff_link),
        "",
        "  Try it:",
        f'    curl -H "X-API-Key: {keys["pro"]}" {address}/api/market/BTCUSD/quote',
    ]
    if not stays_here:
        lines += ["", "  The demo keys and login work from this machine only, at http://127.0.0.1."]
    return lines


def _staff_login(address: str, link: str | None) -> list[str]:
    return [
        "  Demo staff login, once, within 15 minutes",
        f"    {address}{link}" if link else "    none: somebody of your own has the name of the demo's staff",
        "    .venv/bin/python manage.py demo_login    prints another",
    ]


def _first_steps() -> list[str]:
    return [
        "  It starts empty. To begin:",
        "    .venv/bin/python manage.py load_instruments     the shipped instruments, or your CSV",
        "    .venv/bin/python manage.py createsuperuser      a login for the back office",
        "    .venv/bin/python manage.py issue_key YOUR_NAME  an API key",
    ]


def _separate_engine() -> list[str]:
    return ["", "  Prices come over Redis from an engine beside this: .venv/bin/python manage.py run_engine"]
