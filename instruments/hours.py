"""When a market is open, from local wall times; `*_ms` is UTC."""

import re
from collections.abc import Iterator
from datetime import date, datetime, time
from zoneinfo import ZoneInfo

Span = tuple[int, int]

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# Wall times are minutes: from Monday 00:00 in the weekly plan, else ordinal day * 1,440 + minute of day.
_DAY, _WEEK, _DAY_MS, _FAR_MS = 1_440, 10_080, 86_400_000, 1 << 63
_FIRST_DAY, _LAST_DAY = date(1970, 1, 1).toordinal(), date(2200, 1, 1).toordinal()
_ENTRY = re.compile(r"(\w+)(?:-(\w+))? ([0-9:]+)-(?:(\w+) )?([0-9:]+)")
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")


class TradingHours:
    """Sessions of one market; a holiday closes, or cuts short, the trading day that ends on its local date.

    A session belongs to the date on which it ends (Sun 18:00-17:00 is Monday's). One of several days is cut
    into trading days at its closing time, so 25 December shuts forex from the 24th 17:00 to the 25th 17:00,
    and an early close lasts until the next trading day begins. A wall time that the clocks skip is the moment
    they jump, one that they repeat its first occurrence. Before 1970 and after 2199 only 24/7 is open.

    24/7 takes no holidays, has no next open or close, and its sessions are the UTC days.
    """

    def __init__(self, zone: ZoneInfo, week: list[Span], closings: dict[int, int]) -> None:
        """`week` empty is 24/7; `closings` holds, by ordinal day, the wall time from which it is closed."""
        self._zone = zone
        self._week = week
        self._closings = closings
        self._stretch: tuple[int, int, bool] = (0, 0, False)

    @classmethod
    def parse(cls, timezone: str, sessions: str, holidays: str) -> "TradingHours":
        zone, closings = _parse_zone(timezone), _parse_holidays(holidays)
        if sessions.strip() != "24/7":
            spans = [span for entry in sessions.split(";") for span in _parse_entry(entry.strip())]
            return cls(zone, _join(spans), closings)
        if closings:
            raise ValueError("holidays must be empty for sessions 24/7, which never close")
        return cls(zone, [], {})

    def is_open(self, at_ms: int) -> bool:
        # Asked for every tick, so the stretch of the last answer, open or closed, is kept.
        start_ms, end_ms, is_open = self._stretch
        return is_open if start_ms <= at_ms < end_ms else self._stretch_at(at_ms)[2]

    def session_at(self, at_ms: int) -> Span | None:
        """The session that contains the time, its end exclusive."""
        start_ms, end_ms, is_open = self._stretch_at(at_ms)
        return (start_ms, end_ms) if is_open else None

    def next_open(self, at_ms: int) -> int | None:
        """The first start of a session after the time."""
        return next((start_ms for start_ms, _ in self._sessions_around(at_ms) if start_ms > at_ms), None)

    def last_open_before(self, at_ms: int) -> Span | None:
        """The latest session that began at or before the time, whether it has ended or not."""
        if not self._week:
            return at_ms - at_ms % _DAY_MS, at_ms - at_ms % _DAY_MS + _DAY_MS
        mondays = range(_monday(at_ms, 1), _FIRST_DAY - 7, -7)
        newest_first = (span for monday in mondays for span in reversed(self._sessions_of_week(monday)))
        return next((span for span in newest_first if span[0] <= at_ms), None)

    def sessions_between(self, start_ms: int, end_ms: int) -> Iterator[Span]:
        """The sessions of a range in order, clipped to it; for 24/7 the range as one."""
        sessions = self._sessions_around(start_ms) if self._week else iter([(start_ms, end_ms)])
        for opens_ms, closes_ms in sessions:
            if opens_ms >= end_ms:
                return
            if max(opens_ms, start_ms) < min(closes_ms, end_ms):
                yield max(opens_ms, start_ms), min(closes_ms, end_ms)

    def end_of_trading(self, start_ms: int, end_ms: int) -> int:
        """The end of a range, or of the last session in it if that is earlier."""
        if self.is_open(end_ms - 1):
            return end_ms
        closes_ms = [closes_ms for _, closes_ms in self.sessions_between(start_ms, end_ms)]
        return closes_ms[-1] if closes_ms else end_ms

    def _stretch_at(self, at_ms: int) -> tuple[int, int, bool]:
        start_ms, end_ms, _ = self._stretch
        if not start_ms <= at_ms < end_ms:
            opened_ms, closed_ms = self.last_open_before(at_ms) or (-_FAR_MS, -_FAR_MS)
            # One assignment, so that another thread never sees a half-written state.
            if at_ms < closed_ms:
                self._stretch = (opened_ms, closed_ms, True)
            else:
                self._stretch = (closed_ms, self.next_open(at_ms) or _FAR_MS, False)
        return self._stretch

    def _sessions_around(self, at_ms: int) -> Iterator[Span]:
        # A session lasts less than a week, so the one that contains the time began at most 8 dates ago.
        for monday in range(_monday(at_ms, -8), _LAST_DAY if self._week else 0, 7):
            yield from self._sessions_of_week(monday)

    def _sessions_of_week(self, monday: int) -> list[Span]:
        spans = (
            (self._utc_ms(opens), self._utc_ms(closes))
            for start, end in self._week
            for opens, closes in self._open_parts(monday * _DAY + start, monday * _DAY + end)
        )
        return [(start_ms, end_ms) for start_ms, end_ms in spans if start_ms < end_ms]

    def _open_parts(self, start: int, end: int) -> Iterator[Span]:
        """What the holidays leave of a session, in wall times; a part may be empty."""
        opens = start
        for day_end in range(start + _length(start, end, _DAY), end + 1, _DAY):
            # A day that ends at midnight still belongs to the date before.
            closes = max(self._closings.get((day_end - 1) // _DAY, day_end), day_end - _DAY)
            if closes < day_end:
                yield opens, closes
                opens = day_end
        yield opens, end

    def _utc_ms(self, minute: int) -> int:
        while True:
            day, of_day = divmod(minute, _DAY)
            wall = datetime.combine(date.fromordinal(day), time(*divmod(of_day, 60)), self._zone)
            # The two folds stand in the wrong order only where the clocks skip this wall time.
            if wall.timestamp() <= wall.replace(fold=1).timestamp():
                return round(wall.timestamp()) * 1_000
            minute += 1


def _monday(at_ms: int, days_later: int) -> int:
    day = min(max(_FIRST_DAY + at_ms // _DAY_MS, _FIRST_DAY), _LAST_DAY) + days_later
    return day - (day - 1) % 7


def _length(start: int, end: int, period: int) -> int:
    """Minutes from the start until the end comes round next: 1 up to the whole period."""
    return (end - start - 1) % period + 1


def _join(spans: list[Span]) -> list[Span]:
    """The weekly plan in order, with sessions that touch joined."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    (first_start, first_end), (last_start, last_end) = joined[0], joined[-1]
    if last_end == first_start + _WEEK and len(joined) > 1:
        joined = [*joined[1:-1], (last_start, first_end + _WEEK)]
    for (_, end), (start, _) in zip(joined, [*joined[1:], (joined[0][0] + _WEEK, 0)], strict=True):
        if end > start:
            raise ValueError(f"sessions overlap on {_DAYS[start // _DAY % 7]}")
        if end == start:
            raise ValueError("sessions never close: write 24/7")
    return joined


def _parse_zone(timezone: str) -> ZoneInfo:
    try:
        return ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):
        raise ValueError(f'timezone "{timezone}" is unknown: write one such as America/New_York') from None


def _parse_entry(entry: str) -> list[Span]:
    match = _ENTRY.fullmatch(entry)
    if match is None or (match[2] and match[4]):
        raise ValueError(f'session "{entry}" is none of 24/7, Mon-Fri 09:30-16:00, Sun 17:00-Fri 17:00')
    first, last, opens, until, closes = match.groups()
    start = _parse_day(first) * _DAY + _parse_time(opens)
    end = _parse_day(until or first) * _DAY + _parse_time(closes)
    length = _length(start, end, _WEEK if until else _DAY)
    days = (_parse_day(last or first) - _parse_day(first)) % 7 + 1
    starts = [(start + n * _DAY) % _WEEK for n in range(days)]
    return [(start, start + length) for start in starts]


def _parse_day(name: str) -> int:
    if name not in _DAYS:
        raise ValueError(f'day "{name}" is unknown: write one of {", ".join(_DAYS)}')
    return _DAYS.index(name)


def _parse_time(text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f'time "{text}" is unknown: write 00:00 to 23:59')
    return int(match[1]) * 60 + int(match[2])


def _parse_holidays(holidays: str) -> dict[int, int]:
    closings: dict[int, int] = {}
    for text in holidays.split():
        day_text, early, closes = text.partition("@")
        try:
            day = date.fromisoformat(day_text).toordinal()
        except ValueError:
            raise ValueError(
                f'holiday "{text}" is not a date: write 2026-12-25 or 2026-11-27@13:00'
            ) from None
        if day in closings:
            raise ValueError(f'holiday "{text}" is given twice')
        # 0, because a whole holiday also closes the evening before, which is part of its trading day.
        closings[day] = day * _DAY + _parse_time(closes) if early else 0
    return closings
