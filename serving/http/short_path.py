"""The short path of a GET that memory alone can answer: in the protocol, before a scope, a task or an event
exists. Whatever it does not know takes the ordinary path, and both say the same."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol

from core.contract.answers import Body
from core.contract.begun import Begun

Headers = Sequence[tuple[bytes, bytes]]

# Clients send the same head again and again. Of those that were met lately so many are known, or twice as
# many, and none that is longer.
KNOWN = 8192
LONGEST_KNOWN = 1024

# Where the application hands it to the server: in the state of its lifespan.
STATE_NAME = "tickwire.short_path"


class Asker(Protocol):
    """A connection that waits for an answer."""

    begun: Begun | None
    """What the ordinary path does not do again."""

    def answer(self, ready: bytes, head: bytes, content: Body) -> None:
        """With a head in two parts, which goes on after the lines of the server itself, and a body that is in
        pieces where joining them would copy much."""

    def wait(self) -> None:
        """It is answered later."""

    def give_back(self) -> None:
        """Later it takes the ordinary path after all."""


class ShortAnswer(ABC):
    """What a head asks for, as far as the head alone says."""

    __slots__ = ()

    @abstractmethod
    def give(self, asker: Asker) -> bool:
        """False where the ordinary path must be taken."""


class ShortPath(ABC):
    """What a server can answer so. Heads are known by a keyed digest, because they hold keys."""

    def __init__(self) -> None:
        self._empty = blake2b(key=os.urandom(32), digest_size=16)
        self._known: dict[bytes, ShortAnswer] = {}
        self._older: dict[bytes, ShortAnswer] = {}

    @abstractmethod
    def find(self, target: bytes, headers: Headers) -> ShortAnswer | None:
        """For a GET in HTTP/1.1 without a body, on a connection that goes on."""

    def recall(self, head: bytes) -> ShortAnswer | None:
        if len(head) > LONGEST_KNOWN:
            return None
        state = self._empty.copy()
        state.update(head)
        digest = state.digest()
        known = self._known.get(digest)
        if known is None and (known := self._older.get(digest)) is not None:
            self._keep(digest, known)
        return known

    def remember(self, head: bytes, answer: ShortAnswer) -> None:
        if len(head) <= LONGEST_KNOWN:
            state = self._empty.copy()
            state.update(head)
            self._keep(state.digest(), answer)

    def _keep(self, digest: bytes, answer: ShortAnswer) -> None:
        if len(self._known) >= KNOWN:
            self._known, self._older = {}, self._known
        self._known[digest] = answer


class NoShortPath(ShortPath):
    """Where nothing is answered so."""

    def find(self, target: bytes, headers: Headers) -> None:
        return None

    def recall(self, head: bytes) -> None:
        return None


NO_SHORT_PATH = NoShortPath()
