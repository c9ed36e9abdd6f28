"""The database: whether it answers, takes writes, has the tables of this version, connections for all, and
our time."""

import ctypes
import os
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
from django.conf import settings
from django.db import Error, NotSupportedError, connection
from django.db.migrations.loader import MigrationLoader

from core.database import ask, database, fetch
from core.process import (
    LET_IT_OWN,
    NAME_THE_PRIMARY,
    TAKES_NO_WRITES,
    connect_once,
    is_damaged,
    is_unfinished,
    pending_migrations,
    restore_in_its_place,
)
from core.program import command
from market.runtime import bus_url
from market.store import clock_of_writer_s
from operations.copying.databases import place_of
from signals_feed.decisions import SOON_S
from status.models import ProcessReport

from .diagnosis import Diagnosis, fail, ok, warn

# Whether this machine's clock is kept right, and how far others are from it.
CLOCK = "clock"
NTP = "Run a time service such as chrony or systemd-timesyncd on each machine."
# Beyond the first, times in logs and frames contradict each other; beyond the second, limits and leases err.
MUCH_S, TOO_MUCH_S = 0.5, 5.0

# https://man7.org/linux/man-pages/man2/adjtimex.2.html: what it returns, and the size of its structure.
TIME_ERROR, TIMEX_BYTES = 5, 256


def check_clock() -> Iterator[Diagnosis]:
    yield judge(clock_state())


def clock_state() -> int:
    """The kernel's state of the clock; -1 if it is not available."""
    try:
        # With zeros it only reads, which needs no privileges.
        return int(ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(TIMEX_BYTES)))
    except (AttributeError, OSError):
        return -1


def judge(state: int) -> Diagnosis:
    if state == TIME_ERROR:
        return warn(CLOCK, "According to the kernel, no time service keeps this machine's clock right.", NTP)
    if state < 0:
        return warn(CLOCK, f"{os.uname().sysname} does not say whether the clock is kept right.", NTP)
    return ok(CLOCK, "A time service keeps this machine's clock right.")


def check_engine_clock() -> Iterator[Diagnosis]:
    off_s = clock_of_writer_s()
    if off_s is None:
        return
    says = f"The engine's clock is {abs(off_s):,.1f} s {'ahead of' if off_s > 0 else 'behind'} the database's"
    if abs(off_s) > SOON_S:
        yield fail(CLOCK, f"{says}: signals are not filled, and end as cancelled.", NTP)
    elif abs(off_s) > MUCH_S:
        yield warn(CLOCK, f"{says}.", NTP)
    else:
        yield ok(CLOCK, "The engine's clock agrees with the database's.")


def compare(about: str, who: str, theirs: float, before: float, after: float) -> Diagnosis:
    """`before` and `after` the question, by our clock, all in seconds. Half of it is the way there."""
    way_s = (after - before) / 2
    off_s = theirs - (before + way_s)
    if abs(off_s) - way_s < MUCH_S:
        return ok(about, f"The clock of {who} agrees with ours, to {max(abs(off_s), way_s) * 1000:,.0f} ms.")
    says = f"The clock of {who} is {abs(off_s):,.1f} s {'ahead of' if off_s > 0 else 'behind'} ours."
    return fail(about, says, NTP) if abs(off_s) - way_s >= TOO_MUCH_S else warn(about, says, NTP)


DATABASE = "database"
# Connections of commands, and of people who look at the database.
FOR_COMMANDS = 10
# A leader and a standby, if there is Redis.
ENGINES = 2
RUNS = "Check DATABASE_URL, that the server runs, and that this machine may reach it."


def is_made() -> bool:
    """Opening a file of SQLite would create it."""
    return connection.vendor != "sqlite" or Path(connection.settings_dict["NAME"]).exists()


def check_database() -> Iterator[Diagnosis]:
    if not is_made():
        yield warn(DATABASE, f"There is no database at {_place()} yet.", f"`{command('serve')}` makes it.")
        return
    try:
        connect_once()
        # Reads the database, because a damaged SQLite file opens like any other.
        unfinished = is_unfinished()
    except NotSupportedError as error:
        yield fail(DATABASE, f"{str(error).rstrip('.')}.", "Upgrade the database server.")
        return
    except (Error, psycopg.Error) as error:
        if is_damaged(error):
            yield fail(DATABASE, f"The database file {_place()} is damaged.", restore_in_its_place())
            return
        reason = str(error).strip().splitlines()[0].rstrip(".")
        yield fail(DATABASE, f"The database does not answer: {reason}.", RUNS)
        return
    version = ".".join(map(str, connection.get_database_version()))
    yield ok(DATABASE, f"{connection.display_name} {version} answers at {_place()}.")
    if unfinished:
        says = "The database is incomplete: a `restore` or `move` into it has not finished."
        yield fail(DATABASE, says, "Run that command again.")
        return
    if connection.vendor == "postgresql" and (lacking := _lacking_rights()):
        yield fail(DATABASE, f"The role of DATABASE_URL {lacking}.", LET_IT_OWN)
        return
    yield from _migrations()
    if connection.vendor == "postgresql":
        yield from _postgresql()


def _place() -> str:
    if connection.vendor == "postgresql":
        return place_of(connection.connection.info)
    return str(connection.settings_dict["NAME"])


def _lacking_rights() -> str:
    """Tables that another role made, or a schema that is another's."""
    tables = [*connection.introspection.django_table_names(), "django_migrations"]
    table = ask(
        "SELECT min(relname) FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid"
        " WHERE nspname = current_schema() AND relname = ANY(%s) AND NOT"
        " (has_table_privilege(pg_class.oid, 'SELECT') AND has_table_privilege(pg_class.oid, 'INSERT'))",
        tables,
    )
    if table:
        return f"may not read and write the table {table}"
    [(may_create, schema)] = fetch(
        "SELECT has_schema_privilege(current_schema(), 'CREATE'), current_schema()"
    )
    return "" if may_create or not pending_migrations() else f"may make no tables in the schema {schema}"


def _migrations() -> Iterator[Diagnosis]:
    if pending := pending_migrations():
        first = pending[0]
        verb = "is" if len(pending) == 1 else "are"
        says = f"Of the migrations, {len(pending)} {verb} pending; the first is "
        says += f"{first.app_label}.{first.name}."
        if settings.PRODUCTION:
            yield fail(DATABASE, says, f"Run `{command('migrate')}`.")
        else:
            yield warn(DATABASE, says, f"`{command('serve')}` applies them when it starts.")
        return
    loader = MigrationLoader(connection)
    ours = {app for app, _ in loader.disk_migrations}
    later = [
        f"{app}.{name}"
        for app, name in loader.applied_migrations
        if app in ours and _is_later(loader, app, name)
    ]
    if later:
        says = f"The database was migrated by a later version, for example by {later[0]}."
        yield warn(
            DATABASE, says, "Run the later version here too, unless you are about to go back on purpose."
        )
    else:
        yield ok(DATABASE, "It has the tables of this version.")


def _is_later(loader: MigrationLoader, app: str, name: str) -> bool:
    return (app, name) not in loader.disk_migrations and (app, name) not in _replaced(loader)


def _replaced(loader: MigrationLoader) -> set[tuple[str, str]]:
    return {old for migration in loader.disk_migrations.values() for old in migration.replaces}


def _postgresql() -> Iterator[Diagnosis]:
    before = time.time()
    theirs, after = ask(database().clock).timestamp(), time.time()
    yield compare(DATABASE, "the database", theirs, before, after)
    if database().takes_no_writes():
        yield fail(DATABASE, TAKES_NO_WRITES, NAME_THE_PRIMARY)
    yield from _connections()


def _connections() -> Iterator[Diagnosis]:
    pool = connection.settings_dict["OPTIONS"].get("pool")
    # Only PgBouncer's own settings contain its number of connections.
    if not pool or connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"]:
        return
    [(most, reserved)] = fetch(
        "SELECT current_setting('max_connections')::int,"
        " current_setting('superuser_reserved_connections')::int"
        " + coalesce(current_setting('reserved_connections', true)::int, 0)"
    )
    has_reports = ProcessReport._meta.db_table in connection.introspection.table_names()
    web = ProcessReport.objects.running() if has_reports else 0
    yield judge_connections(web, pool["max_size"], most, reserved)


def connections_needed(web: int, engines: int, pool: int) -> int:
    """The most that all processes hold at once. docs/operate/sizing.md reckons in the same way."""
    return (web + engines) * pool + FOR_COMMANDS


def judge_connections(web: int, pool: int, most: int, reserved: int) -> Diagnosis:
    """`web`: processes that report now. The settings of other machines are not known here."""
    engines = ENGINES if bus_url() else 0
    needed, allowed = connections_needed(max(web, 1), engines, pool), most - reserved
    processes = f"{web} web processes that run now" if web > 1 else "1 web process"
    both = f"{processes} + {engines} engines" if engines else processes
    says = (
        f"All processes may hold {needed} connections, and the server allows {allowed}: ({both}) × {pool} +"
        f" {FOR_COMMANDS} for commands, if other machines have this one's DATABASE_POOL of {pool}."
    )
    if needed <= allowed:
        return ok(DATABASE, says)
    fix = (
        f"Raise max_connections of PostgreSQL to at least {needed + reserved}, lower DATABASE_POOL, run fewer"
        " workers, or put PgBouncer in front: docs/operate/sizing.md."
    )
    return fail(DATABASE, says, fix) if pool > allowed else warn(DATABASE, says, fix)
