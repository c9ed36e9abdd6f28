"""The places of streams, kept in a file, so that a program that starts again goes on where it was."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from pathlib import Path
from typing import Any, NamedTuple

from .errors import StateError

KIND, VERSION = "tickwire-state", 1


class Place(NamedTuple):
    """Of the last frame of a symbol, or of its candles of one timeframe."""

    epoch: str
    seq: int
    time: int
    """Milliseconds since the epoch; of a candle, when it opened."""


class State:
    """Where streams are: pass it to `watch`, `order_flow` and `follow_*`. It moves with each frame that your
    program receives. One state serves one stream of each kind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[str, dict[str, Place]] = {}
        self._since: dict[str, str] = {}

    @classmethod
    def load(cls, path: str | Path) -> State:
        """A new one if there is no such file. Raises StateError if the file is damaged or is not a state."""
        state = cls()
        try:
            body = json.loads(Path(path).read_bytes())
            if body["kind"] == KIND and body["version"] != VERSION:
                raise StateError(
                    f"{path} has version {body['version']}; this client reads version {VERSION}."
                )
            state._read(body)
        except FileNotFoundError:
            return cls()
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as failure:
            raise StateError(f"{path} is damaged, or is not the state of a Tickwire client.") from failure
        return state

    def save(self, path: str | Path) -> None:
        """Atomically: a program that is killed meanwhile leaves the old file whole."""
        path = Path(path)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            try:
                json.dump(self._written(), file)
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise

    def place(self, stream: str, key: str) -> Place | None:
        return self._places.get(stream, {}).get(key)

    def places(self, stream: str) -> dict[str, Place]:
        with self._lock:
            return dict(self._places.get(stream, {}))

    def move(self, stream: str, key: str, place: Place | None) -> None:
        with self._lock:
            places = self._places.setdefault(stream, {})
            if place is None:
                places.pop(key, None)
            else:
                places[key] = place

    def since(self, stream: str) -> str | None:
        return self._since.get(stream)

    def move_since(self, stream: str, since: str) -> None:
        with self._lock:
            self._since[stream] = since

    def _written(self) -> dict[str, Any]:
        with self._lock:
            streams: dict[str, dict[str, Any]] = {
                stream: {"places": {key: place._asdict() for key, place in places.items()}}
                for stream, places in self._places.items()
            }
            for stream, since in self._since.items():
                streams.setdefault(stream, {})["since"] = since
        return {"kind": KIND, "version": VERSION, "streams": streams}

    def _read(self, body: Any) -> None:
        if body["kind"] != KIND:
            raise ValueError(body["kind"])
        for stream, known in body["streams"].items():
            for key, place in known.get("places", {}).items():
                epoch, seq, time = place["epoch"], place["seq"], place["time"]
                if not isinstance(epoch, str) or type(seq) is not int or type(time) is not int:
                    raise TypeError(key)
                self.move(stream, key, Place(epoch, seq, time))
            if (since := known.get("since")) is not None:
                self.move_since(stream, str(since))
