"""Whether a replica of the bus is as new as the bus was a moment ago. No machine's clock has to be right."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from redis.exceptions import RedisError

from core.background import BackgroundLoop
from core.deadlines import patient
from core.fault_log import LastingFault
from core.redis.connections import connect_redis, key_of
from market.prices.records import JournalPosition

from .journal import HEAD

logger = logging.getLogger(__name__)

# Clients hear of it within three seconds: a look, so long for the replica, another look, and its answer.
LOOK_S, LATE_S, PATIENCE_S = 0.4, patient(1.0), patient(0.5)
MOST_OWED = 100


class ReplicaWatch:
    """`tell` is called with True when what is read here has become late, and with False when it is not."""

    def __init__(
        self,
        master_url: str,
        position: Callable[[], JournalPosition],
        tell: Callable[[bool], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # The client's types name both its synchronous and its asynchronous answers.
        self._redis: Any = connect_redis(master_url)
        self._position, self._tell, self._clock = position, tell, clock
        self._head = key_of(HEAD)
        self._owed: deque[tuple[float, JournalPosition]] = deque(maxlen=MOST_OWED)
        """What the bus had at which time, and the replica has yet to hand on."""
        self._is_late = False
        self._loop = BackgroundLoop(
            "bus replica",
            self.look,
            fault=LastingFault(logger, "Nobody knows how late the replica of the bus is", logging.INFO),
            broke="The replica of the bus could not be compared with the bus",
            passing=(RedisError, OSError),
            after=LOOK_S,
        )

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()
        await self._redis.aclose()

    async def look(self) -> None:
        while self._owed and self._has(self._owed[0][1]):
            self._owed.popleft()
        now_s = self._clock()
        self._turn(bool(self._owed) and now_s - self._owed[0][0] > LATE_S)
        async with asyncio.timeout(PATIENCE_S):
            epoch, number = await self._redis.hmget(self._head, "epoch", "n")
        if epoch is not None:
            self._owed.append((now_s, JournalPosition(epoch.decode(), int(number))))

    def _has(self, asked: JournalPosition) -> bool:
        here, newest = self._position(), self._owed[-1][1]
        if here.epoch == asked.epoch:
            return here.number >= asked.number
        # Nothing more comes of a numbering that has ended.
        return here.epoch == newest.epoch

    def _turn(self, is_late: bool) -> None:
        if is_late != self._is_late:
            self._is_late = is_late
            if is_late:
                logger.warning("The replica of the bus is behind: the streams are stale. See BUS_REPLICA_URL")
            else:
                logger.info("The replica of the bus has caught up")
            self._tell(is_late)
