"""The connections of one server: how many each address has, and which go first when descriptors run out."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from itertools import islice

from accounts.repeated import Repeated

from . import descriptors, metrics, refusals
from .addresses import Groups
from .refusals import Refusal

logger = logging.getLogger(__name__)
LOOKED_AT = 64
CROWDED = (
    "%d connections refused: the last came from %s, and an address may have %d (CONNECTIONS_PER_ADDRESS)."
)
SCARCE = (
    "%d connections that had shown no key were closed: this process may open %d files, and nearly all are"
    " in use. `ulimit -n`, or LimitNOFILE of systemd, sets a higher limit."
)


class Connection:
    """One of a client, also after it has become a WebSocket."""

    __slots__ = ("group", "is_known")

    def __init__(self, group: str) -> None:
        self.group = group
        self.is_known = False
        """A valid key came over it."""


class Connections:
    def __init__(self, groups: Groups, per_address: int) -> None:
        self._groups, self._per_address = groups, per_address
        self._counts: dict[str, int] = defaultdict(int)
        self.look_at_limit()
        # The oldest first. Those that have become known are taken out when they are met.
        self._unknown: dict[Connection, asyncio.Transport] = {}
        self._crowded, self._scarce = Repeated(logger, CROWDED), Repeated(logger, SCARCE)

    def look_at_limit(self) -> None:
        """An operator may have changed it (`prlimit`)."""
        self._limit = descriptors.limit()
        self._most = descriptors.most_for_connections(self._limit)

    def arrive(self, host: str, transport: asyncio.Transport) -> tuple[Connection, Refusal | None]:
        """Counted from now on; with a refusal if there is no place for it."""
        connection = Connection(self._groups.of(host) if self._per_address else "")
        refusal = self._count(connection.group)
        kernel = transport.get_extra_info("socket")
        if kernel is not None and kernel.fileno() >= self._most and not self.make_room():
            refusal = refusals.FULL
        self._unknown[connection] = transport
        return connection, refusal

    def _count(self, group: str) -> Refusal | None:
        if not group:
            return None
        self._counts[group] += 1
        if self._counts[group] <= self._per_address:
            return None
        self._crowded.tell(group, self._per_address)
        return refusals.too_many_connections(self._per_address)

    def leave(self, connection: Connection) -> None:
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
        """So many came at once, or files were opened, that nobody is let in any more."""
        for _ in range(self._limit - self._most):
            if not self.make_room():
                return

    def _waits_for_none(self, connection: Connection) -> bool:
        protocol = self._unknown[connection].get_protocol()
        return not getattr(protocol, "is_answering", False)

    def _end(self, connection: Connection) -> None:
        self._unknown.pop(connection).abort()
        metrics.refused.labels("descriptors").inc()
        self._scarce.tell(self._limit)
