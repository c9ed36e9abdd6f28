"""All checks, in the order in which one fault explains the next: settings, folders, Redis, mail, prices and
the archive."""

import os
import secrets
import shutil
import smtplib
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.smtp import EmailBackend
from django.utils import timezone
from redis.exceptions import NoPermissionError, RedisError

from archive.belonging import NotOurs, check
from archive.journal import LACKS_PYARROW, has_pyarrow, journal_folder
from archive.manifests import MANIFESTS
from archive.stores import NotStored, S3Bucket, S3Store, StoreFault, archive_store
from core.process import pending_migrations
from core.program import command
from core.redis.connections import connect_redis_of_threads
from core.times import epoch_ms
from instruments.facts import PUSH, default_feed, feeds_of
from instruments.models import Instrument
from market.models import IngestKey, LastQuote
from market.runtime import bus_url
from market.store import has_writer, wanted_kind
from operations.ledger_log import check_checkpoints
from operations.metrics import check_last_backup
from operations.void_keys import check_void_keys

from .database import check_clock, check_database, check_engine_clock, compare, is_made
from .diagnosis import FAIL, Diagnosis, fail, ok, warn
from .proxy import check_static_files

# The data folder of this installation.
DATA = "data"
ELSEWHERE = "Make it writable for this user, or name another one with --data or VAR_DIR."
# Free space below which a database or a journal stops, and below which the operator should act.
LEAST_BYTES, FEW_BYTES = 100_000_000, 1_000_000_000


def check_folder(folder: Path) -> Iterator[Diagnosis]:
    if not folder.exists():
        yield _missing(folder)
        return
    if why := _why_unwritable(folder):
        yield fail(DATA, f"Nothing can be written to {folder}: {why}.", ELSEWHERE)
        return
    yield _space(folder)
    if open_to_others := [path for path in _private(folder) if path.stat().st_mode & 0o077]:
        names = " ".join(str(path) for path in open_to_others)
        yield warn(DATA, f"Other users may read what should be private: {names}.", f"chmod go= {names}")


def _missing(folder: Path) -> Diagnosis:
    nearest = next(parent for parent in folder.parents if parent.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        fix = f"The first `{command('serve')}` makes it. If it should be there, fix --data or VAR_DIR."
        return warn(DATA, f"{folder} is not there yet.", fix)
    return fail(DATA, f"{folder} is not there, and cannot be made in {nearest}.", ELSEWHERE)


def _why_unwritable(folder: Path) -> str:
    """Tries it, because permissions do not show a read-only or a full disk."""
    probe = folder / f"doctor-{secrets.token_hex(4)}"
    try:
        probe.write_bytes(b"0" * 4096)
        probe.unlink()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def _space(folder: Path) -> Diagnosis:
    free = shutil.disk_usage(folder).free
    says = f"{folder} can be written and has {free / 1e9:,.1f} GB of free space."
    if free >= FEW_BYTES:
        return ok(DATA, says)
    says = f"The disk of {folder} has {free / 1e6:,.0f} MB of free space."
    fix = "Free some, or move the folder to a larger disk."
    return fail(DATA, says, fix) if free < LEAST_BYTES else warn(DATA, says, fix)


def _private(folder: Path) -> Iterator[Path]:
    # A folder of another owner, such as a group's, is shared on purpose.
    if folder.stat().st_uid == os.geteuid():
        yield folder
    yield from (path for path in (folder / "secret", *sorted(folder.glob("*.sqlite3*"))) if path.is_file())


# The mail server: it is connected to and logged in to, and nothing is sent unless a recipient is given.
MAIL = "mail"
SUBJECT = "A test mail of Tickwire"
BODY = "`doctor` was asked to send this. If you can read this, mails reach you."
MAIL_FIX = "Check EMAIL_URL, and that this machine may reach the mail server."


def check_mail(send_to: str = "") -> Iterator[Diagnosis]:
    connection = get_connection()
    if not isinstance(connection, EmailBackend):
        yield _without_server()
        return
    server = f"{connection.host}, port {connection.port}"
    try:
        connection.open()
        if send_to:
            EmailMessage(SUBJECT, BODY, to=[send_to], connection=connection).send()
    except smtplib.SMTPAuthenticationError:
        yield fail(MAIL, f"{server}, refuses the user or the password.", "Check both in EMAIL_URL.")
    except smtplib.SMTPRecipientsRefused as error:
        reasons = "; ".join(f"{code} {_text(reply)}" for code, reply in error.recipients.values())
        yield fail(MAIL, f"{server}, does not take mails to {send_to}: {reasons}.", "Name another address.")
    except (smtplib.SMTPException, OSError) as error:
        yield fail(MAIL, f"{server}, cannot be used: {_reason(error)}.", MAIL_FIX)
    else:
        yield _in_order(server, send_to, has_user=bool(connection.username))
    finally:
        connection.close()


def _without_server() -> Diagnosis:
    backend = settings.EMAIL_BACKEND.split(".")[-2]
    if backend == "dummy":
        # It was named on purpose.
        return ok(MAIL, "No mails are sent (dummymail), and the pages that need them are closed.")
    return ok(MAIL, f"Mails go to no server ({backend}), which production refuses.")


def _in_order(server: str, send_to: str, *, has_user: bool) -> Diagnosis:
    if send_to:
        return ok(MAIL, f"{server}, took a mail to {send_to}. Check whether it arrives.")
    return ok(MAIL, f"{server}, {'accepts the login' if has_user else 'answers'}. Nothing was sent.")


def _reason(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {_text(error.smtp_error)}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).rstrip(".") or type(error).__name__


def _text(reply: bytes | str) -> str:
    return reply.decode(errors="replace") if isinstance(reply, bytes) else reply


# Whether an engine makes prices, and whether their sources send any.
PRICES = "prices"
# A tick is in the database a second after it came, and later while that is busy.
UNWRITTEN = timedelta(seconds=15)
MOST_NAMED = 5
SOURCES = "docs/feeds.md says which sources there are: back office → Instruments → Data."

# The engine alone knows, and tells the processes that serve.
WHY = f"Back office → Market status says which source is lost and why, such as its maintenance. {SOURCES}"


def check_prices() -> Iterator[Diagnosis]:
    now = timezone.now()
    instruments = list(Instrument.objects.filter(active=True).select_related("calendar"))
    if not instruments:
        fix = f"`{command('load_instruments')}` takes the shipped ones, or yours from a CSV."
        yield warn(PRICES, "There are no instruments, so there is nothing to price.", fix)
        return
    yield from _without_key(instruments)
    yield from _without_owner()
    if not has_writer():
        fix = f"Start one: `{command('run_engine' if bus_url() else 'serve')}`."
        yield warn(PRICES, "No engine is running, so no prices are made.", fix)
    elif silent := _silent(instruments, now):
        named = f"{', '.join(silent[:MOST_NAMED])}{' and others' if silent[MOST_NAMED:] else ''}"
        yield warn(PRICES, f"No fresh prices of {named}, though the market is open.", WHY)
    else:
        yield ok(PRICES, "An engine is running, and has fresh prices of each open market.")


def _without_key(instruments: list[Instrument]) -> Iterator[Diagnosis]:
    default = default_feed(settings.DEMO)
    pushed = [
        each
        for each in instruments
        if feeds_of(each.source, each.fallback, default)[0].partition(":")[0] == PUSH
    ]
    if pushed and not IngestKey.objects.filter(revoked_at=None).exists():
        says = (
            f"Of {len(instruments)} instruments, {len(pushed)} wait for pushed prices, and there is no "
            "ingest key."
        )
        fix = f"Name a source for them, or let yours push: `{command('issue_ingest_key NAME')}`. {SOURCES}"
        yield warn(PRICES, says, fix)


def _without_owner() -> Iterator[Diagnosis]:
    names = (
        IngestKey.objects.filter(revoked_at=None, account=None)
        .order_by("name")
        .values_list("name", flat=True)
    )
    if names:
        says = f"Ingest keys without an owner: {len(names)} ({', '.join(names[:MOST_NAMED])})."
        fix = (
            "Their holders could publish signals on the prices that they send. Name the owner: back office → "
            "Market → Ingest keys."
        )
        yield warn(PRICES, says, fix)


def _silent(instruments: list[Instrument], now: datetime) -> list[str]:
    """The symbols of open markets whose last tick is too old."""
    quotes = LastQuote.objects.values_list("instrument_id", "quoted_at")
    quoted = {instrument_id: at for instrument_id, at in quotes if at is not None}
    return [
        each.symbol
        for each in instruments
        if each.calendar.hours().is_open(epoch_ms(now))
        and (
            each.pk not in quoted or now - quoted[each.pk] > UNWRITTEN + timedelta(seconds=each.stale_after_s)
        )
    ]


# Redis: whether it answers, keeps what it is given, and takes writes.
REDIS = "redis"
PATIENCE_S = 3.0
# What the tests run on; an older one is untried.
OLDEST = (6, 2)
KEEPS_ALL = "noeviction"
RUNS = "Check {variable}, that the server runs, and that this machine may reach it."
REPLICA = "BUS_REPLICA_URL"


def check_redis() -> Iterator[Diagnosis]:
    if not settings.REDIS_URL:
        yield ok(REDIS, "None is used, so there may be one process; several need REDIS_URL.")
    for variable in ("REDIS_URL", "BUS_REDIS_URL", REPLICA):
        if url := getattr(settings, variable):
            yield from _check_server(variable, url)


def _check_server(variable: str, url: str) -> Iterator[Diagnosis]:
    # The client's types name both its synchronous and its asynchronous answers.
    redis: Any = connect_redis_of_threads(url, socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S)
    try:
        with redis:
            before = time.time()
            seconds, microseconds = redis.time()
            after = time.time()
            facts = redis.info()
    except NoPermissionError as error:
        says = f"Redis answers, but not what is asked of it ({variable}): {str(error).rstrip('.')}."
        yield warn(REDIS, says, "Allow the user of this address the commands TIME and INFO.")
    except (RedisError, OSError) as error:
        says = f"Redis does not answer ({variable}): {str(error).rstrip('.')}."
        yield fail(REDIS, says, RUNS.format(variable=variable))
    else:
        yield judge_version(str(facts.get("redis_version", "0")))
        yield compare(REDIS, "Redis", seconds + microseconds / 1e6, before, after)
        if variable != REPLICA:
            yield from _memory(facts)
            yield from _writes(variable, facts)


def judge_version(version: str) -> Diagnosis:
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < OLDEST:
        return fail(
            REDIS,
            f"Redis {version} is older than what Tickwire is tested with.",
            "Upgrade it to 6.2 or later.",
        )
    return ok(REDIS, f"Redis {version} answers.")


def _memory(facts: dict[str, Any]) -> Iterator[Diagnosis]:
    policy, most = str(facts.get("maxmemory_policy", "")), int(facts.get("maxmemory", 0))
    if policy != KEEPS_ALL:
        says = f"Redis may drop what it holds when its memory is full (maxmemory-policy {policy}): "
        says += "limits and stream slots would be forgotten."
        fix = "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf."
        # Without a memory limit it never evicts, but a limit may be set later.
        yield fail(REDIS, says, fix) if most else warn(REDIS, says, fix)
    used = int(facts.get("used_memory", 0))
    if most and used > 0.9 * most:
        says = f"Redis has used {used / most:.0%} of its memory (maxmemory)"
        if used < most:
            fix = "Raise maxmemory. A full Redis refuses writes, and prices stand still."
            yield warn(REDIS, f"{says}.", fix)
        else:
            fix = "Raise maxmemory, or remove what else is in it: redis-cli --bigkeys names the largest."
            yield fail(REDIS, f"{says}: it is full and refuses writes, and prices stand still.", fix)


def _writes(variable: str, facts: dict[str, Any]) -> Iterator[Diagnosis]:
    if facts.get("role") != "master":
        yield fail(REDIS, f"{variable} names a replica, which takes no writes.", "Name the primary.")
        return
    failed = [
        name for name in ("rdb_last_bgsave_status", "aof_last_write_status") if facts.get(name) == "err"
    ]
    if failed:
        says = f"Redis could not write to its disk ({', '.join(failed)}), and may refuse writes for it."
        yield fail(REDIS, says, "Look at its log and its disk.")
    elif facts.get("aof_enabled"):
        yield ok(REDIS, "It takes writes and keeps them over a restart (appendonly).")
    else:
        yield ok(
            REDIS,
            "It takes writes. A restart loses what is newer than its last snapshot; processes send it again.",
        )


# Settings, by the checks of the product and of Django; in production with those for it.
SETTINGS = "settings"


def check_settings(*, has_database: bool) -> Iterator[Diagnosis]:
    """Some checks ask the database, so they are left out where it does not answer."""
    databases = ["default"] if has_database else []
    found = checks.run_checks(include_deployment_checks=settings.PRODUCTION, databases=databases)
    grave = [each for each in found if each.level >= checks.WARNING and not each.is_silenced()]
    for each in grave:
        says = f"{each.msg} ({each.id})"
        level = fail if each.level >= checks.ERROR else warn
        yield level(SETTINGS, says, each.hint or "Look at this setting in docs/operate/settings.md.")
    if not grave:
        kind = "production" if settings.PRODUCTION else "the demo" if settings.DEMO else "this machine"
        yield ok(SETTINGS, f"All checks of the settings pass, for {kind}.")


# The archive's bucket: tested by using it, because that alone shows what a key may do.
ARCHIVE = "archive"
BUCKET_FIX = (
    "Look at the ARCHIVE_S3_ settings. The key needs s3:ListBucket, s3:GetObject, s3:PutObject and "
    "s3:DeleteObject there."
)


def check_bucket() -> Iterator[Diagnosis]:
    if settings.ARCHIVE_S3_URL is None:
        return
    try:
        bucket = try_out()
    except (StoreFault, NotStored) as error:
        yield fail(
            ARCHIVE, f"The archive cannot be kept in its bucket: {str(error).rstrip('.')}.", BUCKET_FIX
        )
    else:
        yield ok(ARCHIVE, f"{bucket} takes files, lists them, gives them back and removes them.")


def try_out() -> S3Bucket:
    store = archive_store()
    assert isinstance(store, S3Store)  # noqa: S101 - as the settings say
    store.try_out()
    return store.bucket


# Whether ticks are archived, and the files of past days made.
# The night after a day makes its files; one may be late.
OVERDUE = timedelta(days=2)


def check_archive() -> Iterator[Diagnosis]:
    if not settings.ARCHIVE:
        yield _switched_off()
    elif all(wanted_kind(each) for each in Instrument.objects.filter(active=True)):
        yield ok(ARCHIVE, "No instrument has real prices, so there is nothing to archive.")
    elif not has_pyarrow():
        fix = "Install pyarrow (the extra `archive`) and start the engine again, or set ARCHIVE=0."
        yield warn(ARCHIVE, f"Ticks are not archived: {LACKS_PYARROW}.", fix)
    else:
        yield _files()


def _switched_off() -> Diagnosis:
    waiting = {segment.day for segment in journal_folder().segments()}
    if not waiting:
        return ok(ARCHIVE, "Ticks are not archived: ARCHIVE=0.")
    fix = f"Set ARCHIVE=1 and call `{command('fold_archive')}`, or remove {journal_folder().path}."
    return warn(ARCHIVE, f"ARCHIVE=0, and ticks since {min(waiting)} wait to be made into files.", fix)


def _files() -> Diagnosis:
    journal = journal_folder()
    folders = [journal.path]
    if settings.ARCHIVE_S3_URL is None:
        folders.append(Path(settings.ARCHIVE_DIR))
    for folder in folders:
        if why := why_not_written(folder):
            fix = "Make it writable for this user. Ticks that were not written are lost; manifests say so."
            return fail(ARCHIVE, f"Nothing can be written to {folder} ({why}): ticks are not archived.", fix)
    try:
        store = archive_store()
        check(store)
    except NotOurs as error:
        return fail(
            ARCHIVE, f"{error}.", "Until then no files are made, served or removed; the journal stays."
        )
    except OSError as error:
        return _unread(error)
    today = datetime.now(UTC).date()
    overdue = [segment.day for segment in journal.segments() if segment.day < today - OVERDUE]
    if overdue:
        fix = f"`{command('fold_archive')}` makes them, or says what is in the way."
        return warn(ARCHIVE, f"The files of {min(overdue)} are not made yet.", fix)
    try:
        days = len(store.listing(MANIFESTS))
    except OSError as error:
        return _unread(error)
    return ok(ARCHIVE, f"Ticks are archived; {days} days have their files.")


def _unread(error: OSError) -> Diagnosis:
    says = str(error).rstrip(".")
    return fail(
        ARCHIVE, f"The archive cannot be read: {says}.", "See ARCHIVE_DIR and its disk, or ARCHIVE_S3_URL."
    )


def why_not_written(folder: Path) -> str:
    """Tested by writing, because a mount may be read-only whatever the mode. A missing folder is tested in
    the nearest one above it. Empty if all is well."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"doctor")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror or str(error)
    return ""


def check_here(mail_to: str) -> Iterator[Diagnosis]:
    """Everything on this side of the proxy."""
    yield from check_folder(settings.VAR_DIR)
    in_database = list(check_database())
    has_database = is_made() and not any(found.level == FAIL for found in in_database)
    yield from check_settings(has_database=has_database)
    yield from in_database
    yield from check_redis()
    if has_database and not pending_migrations():
        yield from check_prices()
        yield from check_engine_clock()
        yield from check_archive()
        yield from check_last_backup()
        yield from check_void_keys()
        yield from check_checkpoints()
    yield from check_bucket()
    yield from check_mail(mail_to)
    yield from check_static_files()
    yield from check_clock()
