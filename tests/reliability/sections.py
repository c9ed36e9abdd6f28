"""The sections of the scorecard: a title in words for what a test is marked with."""

from __future__ import annotations

from collections.abc import Mapping

ROWS: Mapping[str, tuple[str, ...]] = {
    "Rate limits under a crowd": ("1, 2", "77"),
    "Stream limits under a crowd": ("3",),
    "A process that holds streams is killed": ("4",),
    "The server or the engine is killed while it writes": ("5",),
    "A web process is killed while a crowd is connected": ("6",),
    "Redis is killed, paused or replaced": ("7", "7, 8, 48", "7, Sentinel", "48–51", "49"),
    "PostgreSQL is killed, paused or replaced": ("8", "8, 52", "8, PgBouncer", "53"),
    "Workers and their supervisor": ("supervisor",),
    "Readiness probes": ("readiness",),
    "Clients that never read": ("9, 10", "11"),
    "Resuming after a disconnection": ("12", "12, 13", "12–14", "14"),
    "Revoked keys and changed tiers": ("15", "15, 16"),
    "Malformed messages, frames and handshakes": ("17", "17, 38", "19"),
    "Floods of subscribes, and sockets that never subscribe": ("21", "22"),
    "Access to the records of others": ("30",),
    "Secrets in logs, answers and pages": ("31", "31, canaries"),
    "Rotating secrets": ("31, rotated secrets",),
    "The time that refusing a key takes": ("33",),
    "Orderly shutdown": ("35",),
    "Rolling restarts": ("36",),
    "Overload": ("37", "37, 43"),
    "Request smuggling": ("38",),
    "Slow and silent connections": ("43", "44"),
    "Oversized request bodies": ("45",),
    "Peers that vanish": ("46, 47",),
    "Disks that are full or fail": ("54", "55"),
    "Clocks that jump": ("56",),
    "Frozen processes": ("59",),
    "Migrations under load": ("60",),
    "Frames sent to the wrong connection": ("63, sockets' numbers", "sockets' numbers"),
    "Guessing passwords": ("64",),
    "The quota of AI requests": ("68",),
    "Odd and duplicated headers": ("69",),
    "Slow regular expressions": ("71",),
    "Large answers": ("73",),
    "Backup and restore under writes": ("74",),
    "Secrets in the repository": ("78",),
    "A third-party client: Node's ws": ("client: Node ws",),
    "Notices of changed accounts and keys": ("control events",),
    "Connections are spread evenly over workers": ("even spread",),
    "Simultaneous closing of signals": ("signals",),
    "Two services on one data folder": ("two services",),
    "Upgrades and rollbacks": ("upgrade",),
    "The same tests on daphne": ("contract on daphne",),
    "The tools that count losses": ("5–8",),
}
TITLES = {row: title for title, rows in ROWS.items() for row in rows}
OF_CHECKS = frozenset(ROWS["The tools that count losses"])
"""Tests of the counting itself, as are those whose names begin with `control`."""
