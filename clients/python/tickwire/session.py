"""What a stream knows between its connections: what to say, where it was, how to go on. It does no I/O."""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from websockets.exceptions import InvalidStatus

from .answers import UNREACHED
from .errors import Json, StreamError
from .missed import CandleFill, Fill, Hole, Missed, OnMissed, TickFill, warn
from .pages import time_ms
from .state import Place, State

logger = logging.getLogger(__name__)

FIRST_WAIT_S, LONGEST_WAIT_S = 0.25, 15.0
# What breaks off sooner than this after its reply has not come back: the waits go on growing.
STEADY_S = 10.0
# A restart of the service is over by then; what lasts longer, somebody should hear of.
QUIET_FAILURES = 3
# The service says something at least every ten seconds.
SILENCE_S = 20.0
# One that is silent answers no close either.
CLOSE_S = 1.0
OnNotice = Callable[[Json], None]


def log_notice(notice: Json) -> None:
    """restarting, stale, live, deactivated, activated or new_series; all but the first name symbols."""
    level = logging.INFO if notice["code"] in ("restarting", "live", "activated") else logging.WARNING
    logger.log(level, "Notice from the service: %s: %s", notice["code"], ", ".join(notice.get("symbols", [])))


def as_list(names: Sequence[str]) -> list[str]:
    """A text is one name, and not its letters."""
    return [names] if isinstance(names, str) else list(names)


@dataclass(frozen=True)
class Manner:
    """How a stream is followed, whichever it is."""

    on_missed: OnMissed = warn
    on_notice: OnNotice = log_notice
    state: State = field(default_factory=State)
    fill: bool = False
    tries: int = 8
    """How often a refused stream is asked for again."""
    clock: Callable[[], float] = time.monotonic


class Session:
    """A numbered stream: of prices, and of order flow."""

    def __init__(
        self,
        stream: str,
        api_key: str,
        symbols: Sequence[str] = (),
        features: Sequence[str] = (),
        manner: Manner | None = None,
    ) -> None:
        self.stream, self.manner = stream, manner or Manner()
        self._api_key, self.symbols = api_key, [symbol.upper() for symbol in symbols]
        self._features = sorted({"seq", "heartbeat", *features})
        self._state, self._clock = self.manner.state, self.manner.clock
        self._epoch: str | None = None
        self._lost: set[str] = set()
        """Keys with a place that this connection could not resume from."""
        self._fresh: set[str] = set()
        """Keys of which no frame has come since the reply."""
        self._error: Json | None = None
        self._failures = self._refusals = 0
        self._was_live = False
        self._answered_at: float | None = None

    @property
    def path(self) -> str:
        return f"/ws/{self.stream}"

    def subscribe(self) -> str:
        """The first message of a connection."""
        self._error = self._answered_at = None
        return json.dumps(self.subscription())

    def subscription(self) -> Json:
        message: Json = {"action": "subscribe", "api_key": self._api_key, "features": self._features}
        if self.symbols:
            message["symbols"] = self.symbols
        self.add_place(message)
        return message

    def add_place(self, message: Json) -> None:
        places = {key: each for key, each in self._state.places(self.stream).items() if self.wants(key)}
        if not places:
            return
        epoch = self._epoch or max(places.values(), key=lambda place: place.time).epoch
        positions = {key: place.seq for key, place in places.items() if place.epoch == epoch}
        self._lost = places.keys() - positions.keys()
        if positions:
            message["resume"] = {"epoch": epoch, "positions": positions}

    def wants(self, key: str) -> bool:
        """A state may have places of symbols that are not followed this time."""
        return not self.symbols or key in self.symbols

    def hear(self, text: str | bytes) -> list[Json | Hole]:
        """What a frame brings: data, and what is missing before it."""
        return self.take(json.loads(text))

    def take(self, frame: Json) -> list[Json | Hole]:
        kind = frame.get("type")
        if kind == "subscribed":
            return self.take_reply(frame)
        if kind == "gap":
            return self._take_gap(frame)
        if kind == "error":
            self._take_error(frame)
        elif kind == "notice":
            self.manner.on_notice(frame)
        elif kind == "conflated":
            self._pass_over(frame)
        elif kind not in ("heartbeat", "pong", "unsubscribed", "subscriptions"):
            return self._take_data(frame)
        return []

    def take_reply(self, reply: Json) -> list[Json | Hole]:
        unknown = [each["symbol"] for each in reply["rejected"]]
        if unknown and not reply["symbols"] and not self._was_live:
            message = f"There is no such symbol: {', '.join(unknown)}."
            raise StreamError({"code": "symbol_not_found", "status": 404, "message": message})
        if unknown:
            logger.warning("Unknown symbols: %s", ", ".join(unknown))
        self._epoch = reply.get("epoch")
        positions, was_live = reply.get("positions", {}), self._was_live
        lost = {*reply.get("unrecovered", []), *(self._lost & positions.keys())}
        for key, seq in positions.items():
            if self._state.place(self.stream, key) is None:
                # Of 0 nothing was ever sent.
                if was_live and seq:
                    lost.add(key)
                else:
                    self._state.move(self.stream, key, Place(self._epoch or "", seq, reply["time"]))
        self._fresh = set(positions)
        self._answered_at, self._was_live, self._refusals = self._clock(), True, 0
        return self._holes(sorted(lost), positions, reply["time"])

    def _holes(self, keys: Sequence[str], positions: dict[str, int], at_ms: int) -> list[Json | Hole]:
        holes = list[Json | Hole]()
        for key in keys:
            before, seq = self._state.place(self.stream, key), positions.get(key)
            after = None if seq is None else Place(self._epoch or "", seq, at_ms)
            holes += self._hole(key, before, after, at_ms)
        return holes

    def _hole(self, key: str, before: Place | None, after: Place | None, end_ms: int) -> list[Json | Hole]:
        first = last = None
        if before is not None and after is not None and before.epoch == after.epoch:
            if before.seq == after.seq:
                return []
            if before.seq < after.seq:
                first, last = before.seq + 1, after.seq
        symbol, _, timeframe = key.partition("/")
        start_ms = None if before is None else before.time
        missed = Missed(symbol, timeframe or None, first, last, start_ms, end_ms)
        return [Hole(missed, key, before, after)]

    def _take_gap(self, gap: Json) -> list[Json | Hole]:
        self._epoch, lost, positions = gap["epoch"], gap["symbols"], gap.get("positions", {})
        places = self._state.places(self.stream)
        is_all = "*" in lost
        keys = [key for key in places if self.wants(key) and (is_all or key.partition("/")[0] in lost)]
        for key, place in places.items():
            # The numbers of the others go on.
            if self.wants(key) and key not in keys:
                self._state.move(self.stream, key, place._replace(epoch=gap["epoch"]))
        return self._holes(keys or lost, positions, gap["time"])

    def _pass_over(self, notice: Json) -> None:
        """What was left out is known to be: no hole."""
        place = self._state.place(self.stream, notice["symbol"])
        if place is not None:
            passed = place._replace(seq=place.seq + notice["dropped"])
            self._state.move(self.stream, notice["symbol"], passed)

    def _take_data(self, frame: Json) -> list[Json | Hole]:
        if "seq" not in frame:
            return [frame]
        key, seq = self.key_of(frame), frame["seq"]
        is_first = key in self._fresh
        self._fresh.discard(key)
        place = self._state.place(self.stream, key)
        if place is None:
            return [frame]
        if place.epoch == self._epoch and seq <= place.seq:
            # What came twice is one frame; only a snapshot is of before.
            return [{**frame, "snapshot": True}] if is_first else []
        if place.epoch == self._epoch and seq == place.seq + 1:
            return [frame]
        after = Place(self._epoch or "", seq - 1, self.time_of(frame))
        return [*self._hole(key, place, after, after.time), frame]

    def deliver(self, frame: Json, epoch: str | None = None) -> None:
        """It is handed over: from here the stream goes on."""
        if "seq" not in frame:
            return
        key, seq, epoch = self.key_of(frame), frame["seq"], epoch or self._epoch or ""
        place = self._state.place(self.stream, key)
        if place is not None and place.epoch == epoch:
            seq = max(seq, place.seq)
        self._state.move(self.stream, key, Place(epoch, seq, self.time_of(frame)))

    def fill_of(self, hole: Hole) -> Fill | None:
        """What fetches the missing frames, if they can be fetched and are to be."""
        if not self.manner.fill or hole.before is None or hole.after is None:
            return None
        return self.make_fill(hole, hole.before, hole.after)

    def make_fill(self, hole: Hole, before: Place, after: Place) -> Fill | None:
        return TickFill(hole, before, after)

    def report(self, hole: Hole, missed: Missed) -> None:
        self._state.move(self.stream, hole.key, hole.after)
        self.manner.on_missed(missed)

    def key_of(self, frame: Json) -> str:
        """By what its numbers count."""
        return str(frame["symbol"])

    def time_of(self, frame: Json) -> int:
        return int(frame["time"])

    def wait_after_end(self, failure: Exception) -> float | None:
        """The connection ended: seconds to wait before the next, None if there never was one and it was tried
        often enough, or StreamError."""
        error = self._error or {}
        if error and not error["retry"]:
            raise StreamError(error)
        was_answered = self._answered_at is not None
        if not was_answered and (refusal := error or _refusal(failure)):
            self._refusals += 1
            if self._refusals > self.manner.tries:
                raise StreamError(refusal) from failure
        if self._answered_at is not None and self._clock() - self._answered_at >= STEADY_S:
            self._failures = 0
        longest_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * float(2**self._failures))
        self._failures += 1
        if not self._was_live and self._failures > self.manner.tries:
            return None
        if self._failures == QUIET_FAILURES:
            why = error.get("message") or failure or type(failure).__name__
            what = "does not stay open" if was_answered else "cannot be opened"
            logger.warning("%s %s; trying again: %s", self.path, what, why)
        return max(longest_s * random.uniform(0.5, 1.0), float(error.get("retry_after", 0)))  # noqa: S311

    def _take_error(self, frame: Json) -> None:
        if frame["fatal"]:
            self._error = {**frame["error"], "retry": frame["retry"]}
        else:
            raise StreamError(frame["error"])


class FlowSession(Session):
    """There is no order flow of single ticks over REST."""

    def make_fill(self, hole: Hole, before: Place, after: Place) -> Fill | None:
        return None


class CandleSession(Session):
    """Candles are numbered by symbol and timeframe: EURUSD/1m. Those that form have no numbers."""

    def __init__(
        self,
        api_key: str,
        symbols: Sequence[str],
        timeframes: Sequence[str],
        forming: bool,
        manner: Manner | None = None,
    ) -> None:
        super().__init__("candles", api_key, symbols, ["snapshot"], manner)
        self._timeframes, self._forming = as_list(timeframes), forming

    def add_place(self, message: Json) -> None:
        super().add_place(message)
        message["timeframes"] = self._timeframes
        if self._forming:
            message["events"] = ["forming"]

    def wants(self, key: str) -> bool:
        symbol, _, timeframe = key.partition("/")
        return symbol in self.symbols and timeframe in self._timeframes

    def key_of(self, frame: Json) -> str:
        return f"{frame['symbol']}/{frame['timeframe']}"

    def time_of(self, frame: Json) -> int:
        return time_ms(frame["candle"]["time"])

    def deliver(self, frame: Json, epoch: str | None = None) -> None:
        place = self._state.place(self.stream, self.key_of(frame))
        if "seq" not in frame and frame["closed"] and place is not None:
            # One that was fetched.
            self._state.move(self.stream, self.key_of(frame), place._replace(time=self.time_of(frame)))
        super().deliver(frame, epoch)

    def make_fill(self, hole: Hole, before: Place, after: Place) -> Fill | None:
        return CandleFill(hole, before, after)


class AnnouncedSession(Session):
    """Signals and news have no numbers: the place is the last that was received, and before the first the one
    in the reply."""

    def __init__(
        self,
        stream: str,
        api_key: str,
        symbols: Sequence[str],
        since: str | int | None,
        more: Json,
        manner: Manner | None = None,
    ) -> None:
        super().__init__(stream, api_key, symbols, (), manner)
        self._more = more
        if since is not None:
            self._state.move_since(stream, str(since))

    def add_place(self, message: Json) -> None:
        message |= self._more
        if (since := self._state.since(self.stream)) is not None:
            message["since"] = since

    def take_reply(self, reply: Json) -> list[Json | Hole]:
        had_no_place = self._was_live and self._state.since(self.stream) is None
        holes = super().take_reply(reply)
        if "since" in reply:
            self._state.move_since(self.stream, reply["since"])
        return holes or (self._holes(reply["symbols"], {}, reply["time"]) if had_no_place else [])

    def deliver(self, frame: Json, epoch: str | None = None) -> None:
        is_closure = frame.get("type") == "signal.closed"
        self._state.move_since(self.stream, f"closed:{frame['id']}" if is_closure else str(frame["id"]))


def address(url: str, session: Session) -> str:
    return "ws" + url.removeprefix("http") + session.path


def _refusal(failure: Exception) -> Json | None:
    """By the service, before the stream was open."""
    if not isinstance(failure, InvalidStatus) or failure.response.status_code in UNREACHED:
        return None
    status = failure.response.status_code
    return {
        "code": "",
        "status": status,
        "message": f"The service answered {status} instead of a stream.",
    }
