"""Somebody who goes on writing until a test has seen enough."""

from __future__ import annotations

import threading


class Writer:
    """Does `turn` again and again in a thread of its own, until the context is left."""

    def __enter__(self) -> Writer:
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        self._thread.join()

    def run(self) -> None:
        while not self._has_ended.is_set():
            self.turn()

    def turn(self) -> None:
        raise NotImplementedError

    @property
    def has_ended(self) -> threading.Event:
        return self._has_ended
