"""The connections of one server: how many each address has, and which go first when descriptors run out."""

import asyncio
import errno
import logging
import os
import resource
from collections import defaultdict
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from itertools import islice
from typing import Any

from core.addresses import network_of
from core.fault_log import RepeatedWarning

from . import refusals
from .refusals import HttpRefusal


class AddressGroups:
    def __init__(self, trusted: str, *, loopback_counts: bool) -> None:
        names = [name.strip() for name in trusted.split(",") if name.strip()]
        self._all_trusted = "*" in names
        self._trusted = [ip_network(name, strict=False) for name in names if is_network(name)]
        self._loopback_counts = loopback_counts
        self.of = lru_cache(maxsize=4096)(self._of)

    def _of(self, host: str) -> str:
        """What is counted for this host; empty where nothing is."""
        if self._all_trusted:
            return ""
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            # The name of a socket in the file system.
            return ""
        if isinstance(address, IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        if address.is_loopback and not self._loopback_counts:
            return ""
        if any(address in network for network in self._trusted):
            return ""
        return network_of(str(address))


def is_network(name: str) -> bool:
    try:
        ip_network(name, strict=False)
    except ValueError:
        return False
    return True


# More than a million is of no use, and some systems have a limit of a billion.
MOST_DESCRIPTORS = 1_048_576
LEAST_RESERVE, MOST_RESERVE = 32, 512


def raise_limit() -> str:
    """Raise it as far as this user may. Returns a sentence that says what it is now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return f"Room for {soft:,} open files and connections."
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return f"Room for {wanted:,} open files and connections, raised from {soft:,}."


def descriptor_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def descriptors_are_used_up() -> bool:
    try:
        os.close(os.dup(2))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False


logger = logging.getLogger(__name__)
LOOKED_AT = 64
CROWDED = (
    "%d connections refused: the last came from %s, and an address may have %d (CONNECTIONS_PER_ADDRESS)."
)
SCARCE = (
    "%d connections that had shown no key were closed: this process may open %d files, and nearly all are"
    " in use. `ulimit -n`, or LimitNOFILE of systemd, sets a higher limit."
)


class ClientConnection:
    """A connection of a client, also after it has become a WebSocket."""

    __slots__ = ("group", "is_known")

    def __init__(self, group: str) -> None:
        self.group = group
        self.is_known = False
        """A valid key came over it."""


CONNECTION_EXTENSION = "tickwire.connection"


def note_known(scope: dict[str, Any]) -> None:
    """A valid key came over this connection, so it is closed later than others when descriptors are short."""
    if (connection := connection_in(scope)) is not None:
        connection.is_known = True


def connection_in(scope: dict[str, Any]) -> ClientConnection | None:
    """None under another server than ours."""
    return (scope.get("extensions") or {}).get(CONNECTION_EXTENSION)


class ClientConnections:
    def __init__(self, groups: AddressGroups, per_address: int) -> None:
        self._groups, self._per_address = groups, per_address
        self._counts: dict[str, int] = defaultdict(int)
        self.look_at_limit()
        # The oldest first. Those that have become known are taken out when they are met.
        self._unknown: dict[ClientConnection, asyncio.Transport] = {}
        self._crowded, self._scarce = RepeatedWarning(logger, CROWDED), RepeatedWarning(logger, SCARCE)

    def look_at_limit(self) -> None:
        """An operator may have changed it (`prlimit`)."""
        limit = self._limit = descriptor_limit()
        # The rest is for databases, files and other services, which must not fail because clients came.
        self._most = limit - min(max(limit // 8, LEAST_RESERVE), MOST_RESERVE)

    def arrive(self, host: str, transport: asyncio.Transport) -> tuple[ClientConnection, HttpRefusal | None]:
        """Counted from now on; with a refusal if there is no place for it."""
        connection = ClientConnection(self._groups.of(host) if self._per_address else "")
        refusal = self._count(connection.group)
        kernel = transport.get_extra_info("socket")
        if kernel is not None and kernel.fileno() >= self._most and not self.make_room():
            refusal = refusals.FULL
        self._unknown[connection] = transport
        return connection, refusal

    def _count(self, group: str) -> HttpRefusal | None:
        if not group:
            return None
        self._counts[group] += 1
        if self._counts[group] <= self._per_address:
            return None
        self._crowded.tell(group, self._per_address)
        return refusals.too_many_connections(self._per_address)

    def leave(self, connection: ClientConnection) -> None:
        self._unknown.pop(connection, None)
        if group := connection.group:
            connection.group = ""
            self._counts[group] -= 1
            if not self._counts[group]:
                del self._counts[group]

    def make_room(self) -> bool:
        """End the oldest connection that showed no key, if possible one that waits for no answer."""
        while self._unknown:
            oldest = list(islice(self._unknown, LOOKED_AT))
            strangers = [connection for connection in oldest if not connection.is_known]
            for connection in oldest:
                if connection.is_known:
                    del self._unknown[connection]
            if strangers:
                self._end(next(filter(self._waits_for_none, strangers), strangers[0]))
                return True
        return False

    def restore_reserve(self) -> None:
        """Make room once the limit of descriptors keeps new connections out."""
        for _ in range(self._limit - self._most):
            if not self.make_room():
                return

    def _waits_for_none(self, connection: ClientConnection) -> bool:
        protocol = self._unknown[connection].get_protocol()
        return not getattr(protocol, "is_answering", False)

    def _end(self, connection: ClientConnection) -> None:
        self._unknown.pop(connection).abort()
        refusals.refused_total.labels("descriptors").inc()
        self._scarce.tell(self._limit)
