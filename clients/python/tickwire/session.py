"""What a stream knows between its connections: what to say, where it was, how to go on. It does no I/O."""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable, Sequence

from .errors import Json, StreamError

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
OnMissed = Callable[[list[str]], None]
OnNotice = Callable[[Json], None]


def warn(symbols: list[str]) -> None:
    logger.warning("Some data was missed for %s", ", ".join(symbols))


def log_notice(notice: Json) -> None:
    """restarting, stale, live, deactivated, activated or new_series; all but the first name symbols."""
    level = logging.INFO if notice["code"] in ("restarting", "live", "activated") else logging.WARNING
    logger.log(level, "Notice from the service: %s: %s", notice["code"], ", ".join(notice.get("symbols", [])))


def as_list(names: Sequence[str]) -> list[str]:
    """A text is one name, and not its letters."""
    return [names] if isinstance(names, str) else list(names)


class Session:
    def __init__(
        self,
        path: str,
        api_key: str,
        symbols: Sequence[str] = (),
        features: Sequence[str] = (),
        on_missed: OnMissed = warn,
        on_notice: OnNotice = log_notice,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self.path, self._on_notice = path, on_notice
        self._api_key, self._symbols, self._on_missed = api_key, [s.upper() for s in symbols], on_missed
        self._features = sorted({"seq", "heartbeat", *features})
        self._epoch: str | None = None
        self._positions: dict[str, int] = {}
        self._error: Json | None = None
        self._failures = 0
        self._was_live = False
        self._answered_at: float | None = None

    def subscribe(self) -> str:
        """The first message of a connection."""
        self._error = self._answered_at = None
        message: Json = {"action": "subscribe", "api_key": self._api_key, "features": self._features}
        if self._symbols:
            message["symbols"] = self._symbols
        self.add_place(message)
        return json.dumps(message)

    def add_place(self, message: Json) -> None:
        if self._epoch is not None and self._positions:
            message["resume"] = {"epoch": self._epoch, "positions": self._positions}

    def hear(self, text: str | bytes) -> Json | None:
        """A frame: returned if it is data."""
        frame: Json = json.loads(text)
        kind = frame.get("type")
        if kind == "subscribed":
            self.take_reply(frame)
        elif kind == "gap":
            self._take_gap(frame)
        elif kind == "error":
            self._take_error(frame)
        elif kind == "notice":
            self._on_notice(frame)
        elif kind in ("heartbeat", "pong", "unsubscribed", "subscriptions", "conflated"):
            return None
        else:
            self.note(frame)
            return frame
        return None

    def take_reply(self, reply: Json) -> None:
        unknown = [each["symbol"] for each in reply["rejected"]]
        if unknown and not reply["symbols"] and not self._was_live:
            message = f"There is no such symbol: {', '.join(unknown)}."
            raise StreamError({"code": "symbol_not_found", "status": 404, "message": message})
        if unknown:
            logger.warning("Unknown symbols: %s", ", ".join(unknown))
        self._epoch = reply.get("epoch")
        lost, positions = reply.get("unrecovered", []), reply.get("positions", {})
        # Of 0 nothing was ever sent.
        placeless = [symbol for symbol, seq in positions.items() if seq and symbol not in self._positions]
        for symbol, seq in positions.items():
            if symbol in lost or symbol not in self._positions:
                self._positions[symbol] = seq
        if self._was_live:
            lost = sorted({*lost, *placeless})
        self._answered_at, self._was_live = self._clock(), True
        if lost:
            self._on_missed(lost)

    def note(self, frame: Json) -> None:
        if "seq" in frame:
            self._positions[self.key_of(frame)] = frame["seq"]

    def key_of(self, frame: Json) -> str:
        """By what its numbers count."""
        return str(frame["symbol"])

    def wait_after_end(self, failure: Exception) -> float:
        """The connection ended: seconds to wait before the next, or StreamError."""
        error = self._error or {}
        if error and not error["retry"]:
            raise StreamError(error)
        was_answered = self._answered_at is not None
        if self._answered_at is not None and self._clock() - self._answered_at >= STEADY_S:
            self._failures = 0
        longest_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * float(2**self._failures))
        self._failures += 1
        if self._failures == QUIET_FAILURES:
            why = error.get("message") or failure or type(failure).__name__
            what = "does not stay open" if was_answered else "cannot be opened"
            logger.warning("%s %s; trying again: %s", self.path, what, why)
        return max(longest_s * random.uniform(0.5, 1.0), float(error.get("retry_after", 0)))  # noqa: S311

    def _take_gap(self, gap: Json) -> None:
        self._epoch, lost = gap["epoch"], gap["symbols"]
        others = {key: seq for key, seq in self._positions.items() if key.partition("/")[0] not in lost}
        self._positions = ({} if "*" in lost else others) | gap.get("positions", {})
        self._on_missed(lost)

    def _take_error(self, frame: Json) -> None:
        if frame["fatal"]:
            self._error = {**frame["error"], "retry": frame["retry"]}
        else:
            raise StreamError(frame["error"])


class CandleSession(Session):
    """Candles are numbered by symbol and timeframe: EURUSD/1m. Those that form have no numbers."""

    def __init__(
        self,
        api_key: str,
        symbols: Sequence[str],
        timeframes: Sequence[str],
        forming: bool,
        on_missed: OnMissed = warn,
        on_notice: OnNotice = log_notice,
    ) -> None:
        super().__init__("/ws/candles", api_key, symbols, ["snapshot"], on_missed, on_notice)
        self._timeframes, self._forming = as_list(timeframes), forming

    def add_place(self, message: Json) -> None:
        super().add_place(message)
        message["timeframes"] = self._timeframes
        if self._forming:
            message["events"] = ["forming"]

    def key_of(self, frame: Json) -> str:
        return f"{frame['symbol']}/{frame['timeframe']}"


class SignalSession(Session):
    """Signals have no numbers: the place is the last that was told, a signal or its end, and before the first
    the one in the reply."""

    def __init__(
        self,
        api_key: str,
        symbols: Sequence[str],
        closures: bool,
        since: str | None,
        on_missed: OnMissed = warn,
        on_notice: OnNotice = log_notice,
    ) -> None:
        super().__init__("/ws/signals", api_key, symbols, (), on_missed, on_notice)
        self._closures, self._since = closures, since

    def add_place(self, message: Json) -> None:
        if self._closures:
            message["events"] = ["signal.closed"]
        if self._since is not None:
            message["since"] = self._since

    def take_reply(self, reply: Json) -> None:
        had_no_place = self._was_live and self._since is None
        super().take_reply(reply)
        self._since = reply.get("since", self._since)
        if had_no_place:
            self._on_missed(reply["symbols"])

    def hear(self, text: str | bytes) -> Json | None:
        frame = super().hear(text)
        if frame is not None:
            is_closure = frame.get("type") == "signal.closed"
            self._since = f"closed:{frame['id']}" if is_closure else frame["id"]
        return frame


class NewsSession(Session):
    """News have no numbers either: the place is the id of the last item."""

    def __init__(
        self,
        api_key: str,
        symbols: Sequence[str],
        categories: Sequence[str],
        since: str | int | None,
        on_missed: OnMissed = warn,
        on_notice: OnNotice = log_notice,
    ) -> None:
        super().__init__("/ws/news", api_key, symbols, (), on_missed, on_notice)
        self._categories, self._since = as_list(categories), None if since is None else str(since)

    def add_place(self, message: Json) -> None:
        if self._categories:
            message["categories"] = self._categories
        if self._since is not None:
            message["since"] = self._since

    def take_reply(self, reply: Json) -> None:
        super().take_reply(reply)
        self._since = reply.get("since", self._since)

    def hear(self, text: str | bytes) -> Json | None:
        frame = super().hear(text)
        if frame is not None:
            self._since = str(frame["id"])
        return frame


def address(url: str, session: Session) -> str:
    return "ws" + url.removeprefix("http") + session.path
