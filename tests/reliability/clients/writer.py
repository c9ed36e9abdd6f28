"""Somebody who goes on writing until a test has seen enough."""

from __future__ import annotations

import threading
from typing import Self


class Writer:
    """Does `turn` again and again in a thread of its own, until the context is left."""

    def __enter__(self) -> Self:
        self.has_ended = threading.Event()
        self._thread = threading.Thread(target=self.run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Nothing is under way any more."""
        self.has_ended.set()
        self._thread.join()

    def run(self) -> None:
        while not self.has_ended.is_set():
            self.turn()

    def turn(self) -> None:
        raise NotImplementedError
