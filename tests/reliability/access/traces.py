"""Where a secret could have been left: files, databases, Redis, processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import redis
from django.db import connection


def in_files(directory: Path) -> Iterator[tuple[str, bytes]]:
    """Logs, SQLite with its journal, and whatever else a process wrote."""
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            yield f"file {path.name}", path.read_bytes()


def in_database() -> Iterator[tuple[str, bytes]]:
    """Every row of every table, as text."""
    with connection.cursor() as cursor:
        for table in sorted(connection.introspection.table_names()):
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - the name of a table
            yield f"table {table}", "\n".join(map(repr, cursor.fetchall())).encode()


def in_redis(url: str) -> Iterator[tuple[str, bytes]]:
    """Every key and value, as Redis itself would dump them."""
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter():
            kind = client.type(key)
            read = {
                b"string": client.get,
                b"hash": client.hgetall,
                b"set": client.smembers,
                b"list": lambda name: client.lrange(name, 0, -1),
                b"zset": lambda name: client.zrange(name, 0, -1),
                b"stream": client.xrange,
            }
            yield f"redis {key!r}", key + repr(read[kind](key)).encode()


def in_processes(*pids: int) -> Iterator[tuple[str, bytes]]:
    """What `ps` would show of them."""
    for pid in pids:
        yield f"ps {pid}", Path(f"/proc/{pid}/cmdline").read_bytes()


def holding(secret: str, *places: Iterator[tuple[str, bytes]]) -> list[str]:
    wanted = secret.encode()
    return [name for place in places for name, text in place if wanted in text]
