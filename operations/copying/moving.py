"""Carries all rows from one database into another, of either kind, and goes on where it was killed."""

import hashlib
import time

from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from core.program.commands import command

from .backing_up import ledger_head, months_of, schema_of
from .schemas import filled_tables, make_months_named, make_tables_anew
from .stores import Key, Refused, Store, digest
from .tables import Schema, StoredTable
from .text import fields_of
from .unfinished import Ending, Say, Unfinished, finish, found, greater, note

AT_ONCE = 50_000


def move(source: Store, target: Store, name: str, *, anew: bool, despite_ledger: bool, say: Say) -> None:
    """`name` tells this source from others."""
    schema = schema_of(source)
    refuse_unready(source, schema)
    progress = begin(source, target, schema, hashlib.sha256(name.encode()).hexdigest(), anew=anew)
    say("The rules by which the database refuses changes are off while rows are written, and on again after.")
    with source.snapshot():
        carry(source, target, schema, progress, say)
    say("Comparing both, table by table.")
    with source.snapshot(), target.snapshot():
        compare(source, target, schema)
        numbers = greater(progress.numbers, source.numbers())
        ending = Ending(numbers, ledger_head(source), despite_ledger)
    finish(target, ending, say)


def compare(source: Store, target: Store, schema: Schema) -> None:
    for table in schema.tables:
        if digest(source.read(table)) != digest(target.read(table)):
            raise Refused(
                f"{table.name} is not the same in both: something wrote to one of them in the meantime. "
                "Stop it,"
                " and begin again with --anew."
            )


def refuse_unready(source: Store, schema: Schema) -> None:
    graph = MigrationExecutor(connection).loader.graph
    if behind := sorted(graph.nodes.keys() - set(schema.migrations)):
        raise Refused(
            f"The source is behind this version: it lacks {behind[0][0]}.{behind[0][1]}. Run"
            f" `{command('migrate')}` on it first."
        )
    writers = source.ask("SELECT writer FROM market_enginestate WHERE writer <> ''")
    if writers:
        raise Refused(
            "The engine of the source was not stopped properly, so its last ticks may only be in its journal."
            " Start the service on the source once more, stop it with Ctrl-C or SIGTERM, and try again."
        )


def begin(source: Store, target: Store, schema: Schema, name: str, *, anew: bool) -> Unfinished:
    begun = found(target)
    # Without a source only tables were made, and all of them are made again.
    if begun and begun.source and not anew:
        if begun.source == name:
            return begun
        raise Refused(
            "The target is a part of another copy that has not ended. Finish that, or give --anew to"
            " delete it."
        )
    if not anew and (filled := filled_tables(target)):
        raise Refused(f"The target is not empty: {filled[0]} has rows. Name an empty database.")
    if anew and begun is None and filled_tables(target):
        raise Refused("--anew deletes only what a move left unfinished, and the target is whole.")
    numbers = make_tables_anew(target, MigrationExecutor(connection).loader.graph.leaf_nodes())
    make_months_named(target, months_of(source, schema.tables))
    connection.close()
    progress = Unfinished(name, numbers)
    with target.writing():
        target.empty(schema.tables)
        note(target, progress)
    return progress


def carry(source: Store, target: Store, schema: Schema, progress: Unfinished, say: Say) -> None:
    counts = {table.name: source.count(table) for table in schema.tables}
    total, before, began_at = sum(counts.values()), sum(progress.done.values()), time.monotonic()
    if before:
        say(f"Going on after {before:,} of {total:,} rows.")
    for table in schema.tables:
        while lines := list(source.read(table, progress.last.get(table.name), AT_ONCE)):
            with target.writing():
                target.write(table, lines)
                progress.last[table.name] = key_of(table, lines[-1])
                progress.done[table.name] = progress.done.get(table.name, 0) + len(lines)
                note(target, progress)
            done = sum(progress.done.values())
            rate = (done - before) / max(time.monotonic() - began_at, 0.001)
            say(f"{done:>12,} of {total:,}  {table.name}  {rate:,.0f} rows/s")
            if len(lines) < AT_ONCE:
                break


def key_of(table: StoredTable, line: bytes) -> Key:
    at = next(at for at, column in enumerate(table.columns) if column.name == table.key)
    return fields_of(line[:-1].decode())[at]
