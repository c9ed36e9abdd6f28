"""What a stream sent lately, so that a client that was away gets everything that it missed, or nothing of it.

The frames of the last 120 s are kept, but at most 1,000 of each symbol. For 500 symbols, prices and order
flow together take at most 210 MB; at two ticks a second each, they take 52 MB. What frames are yet to be made
of takes a third of that. Candles are few: those of an hour take about 11 MB.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, islice
from operator import itemgetter
from typing import NamedTuple

import msgspec

from market.engine.bus.journal import KEEP_MS, MAX_FRAMES
from market.streams.protocol.messages import ALL, Resume
from market.streams.protocol.subscriptions import SubscriptionChange, Subscriptions, upper_key

NumberedFrame = tuple[int, bytes]
"""A frame's number, and the frame without it."""
MakeFrame = Callable[[bytes], bytes]
"""What is kept is a frame, or its source: most frames without subscribers are never asked for. Makes an empty
frame if there is none to be shown."""
KeptFrame = tuple[int, int, bytes]
"""When a frame came, its number, and the frame."""


# They are few, so more of them can be sent again than of ticks.
CANDLES_KEPT_MS = 3_600_000
NEVER_ENDED = (-1, -1)


class LastSent(NamedTuple):
    """What was last sent of a symbol before this process began to listen."""

    symbol: str
    seq: int
    """0 if nothing ever was."""
    tick: bytes | None = None
    """Its last frame, if known."""
    before: Iterable[KeptFrame] = ()
    """Frames up to there; worth nothing if they end elsewhere."""
    ended_at: int = -1
    """Where a series of the other kind ended: no client resumes from there or before."""


class Opening(msgspec.Struct, frozen=True):
    """What follows a subscribe: facts for the reply, and the frames after it."""

    positions: dict[str, int]
    """The number after which the frames of each subscribed symbol go on, `frames` included."""
    unrecovered: list[str]
    frames: Iterable[NumberedFrame]
    """Each is made when it is due."""


class ReplayAllowance:
    """How much one socket may be replayed: everything that is kept, once in the time for which it is kept."""

    __slots__ = ("_frames", "_since_ms")

    def __init__(self) -> None:
        self._frames = self._since_ms = 0

    def allows(self, frames: int, limit: int, now_ms: int) -> bool:
        if abs(now_ms - self._since_ms) > KEEP_MS:
            self._frames, self._since_ms = 0, now_ms
        if self._frames + frames > limit:
            return False
        self._frames += frames
        return True


def as_kept(kept: bytes) -> bytes:
    return kept


# An empty deque takes as much memory as one of 64.
NO_FRAMES, NO_TIMES = deque[bytes](), deque[int]()


class SymbolFrames:
    """The frames of one symbol, or of its candles of one timeframe. Their numbers have no holes, so only the
    last number is kept."""

    __slots__ = ("_came_ms", "_ended_at", "_frames", "_max_frames", "head", "last_tick")

    def __init__(
        self,
        max_frames: int,
        head: int | None = None,
        last_tick: NumberedFrame | None = None,
        ended_at: int = -1,
    ) -> None:
        self._max_frames = max_frames
        self._frames, self._came_ms = NO_FRAMES, NO_TIMES
        self.head = head
        """The last number; None if frames may have been sent that this process does not know."""
        self.last_tick = last_tick
        self._ended_at = ended_at

    def begin_series(self, last_tick: NumberedFrame | None) -> None:
        """A client that was away got no notice, and must not take one series for the other."""
        self._ended_at, self.last_tick = self.head or 0, last_tick

    def _begin_at(self, seq: int) -> None:
        if self.head is None or seq != self.head + 1 or self._frames is NO_FRAMES:
            self._frames = deque(maxlen=self._max_frames)
            self._came_ms = deque(maxlen=self._max_frames)

    def add(self, seq: int, frame: bytes, now_ms: int, since_ms: int) -> None:
        self._begin_at(seq)
        self.head = seq
        self._frames.append(frame)
        self._came_ms.append(now_ms)
        self._forget_before(since_ms)

    def add_all(self, first_seq: int, kept: Sequence[bytes], came_ms: Sequence[int], since_ms: int) -> None:
        """Their numbers have no holes."""
        self._begin_at(first_seq)
        self.head = first_seq + len(kept) - 1
        self._frames.extend(kept)
        self._came_ms.extend(came_ms)
        self._forget_before(since_ms)

    @property
    def came_ms(self) -> int:
        """When its last frame came; 0 if none has."""
        return self._came_ms[-1] if self._came_ms else 0

    def _forget_before(self, since_ms: int) -> None:
        while self._came_ms and self._came_ms[0] < since_ms:
            self._came_ms.popleft()
            self._frames.popleft()

    def after(
        self, position: int, since_ms: int, make: MakeFrame, *, from_first: bool = False
    ) -> Iterator[KeptFrame] | None:
        """Everything that came after it so far, or None if some of that is no longer known. A client without
        a frame cannot tell how much it missed: from 0 it goes on if nothing came, or where frames are so few
        (`from_first`) that 0 is an ordinary place."""
        if self.head is None or position > self.head or position <= self._ended_at:
            return None
        missed = self.head - position
        start = len(self._frames) - missed
        is_a_place = position > 0 or from_first
        if missed and (start < 0 or not is_a_place or self._came_ms[start] < since_ms):
            return None
        # Copied, because more comes before all of it is read. The tuples are made as they are read.
        came, frames = list(islice(self._came_ms, start, None)), list(islice(self._frames, start, None))
        return zip(came, range(position + 1, self.head + 1), map(make, frames), strict=True)


def _not_subscribed(named: Iterable[str], subscribed: Subscriptions, change: SubscriptionChange) -> list[str]:
    """Misspelt, or left: of these nothing follows. What is unknown is among the rejected already."""
    if subscribed.has_all:
        return []
    rejected = {upper_key(each.symbol) for each in change.rejected}
    strangers = set(named).difference(subscribed.keys)
    return [key for key in strangers if key.partition("/")[0] not in rejected]


class RecentFrames:
    """The recent frames of one stream. There must be no await between `open` and the hub's `subscribe`, so
    that nothing is missed and nothing comes twice."""

    def __init__(
        self, keep_ms: int = KEEP_MS, max_frames: int = MAX_FRAMES, *, from_first: bool = False
    ) -> None:
        self._keep_ms, self._max_frames, self._from_first = keep_ms, max_frames, from_first
        self._frames_of: dict[str, SymbolFrames] = {}
        self._now_ms = 0
        self.epoch = ""
        self.is_offered: Callable[[str], bool] = lambda symbol: True
        """A symbol that is not offered is numbered and kept, but not sent."""
        self.make: MakeFrame = as_kept

    def restart(self, epoch: str) -> None:
        """The numbering started over, or frames went by unseen."""
        self.epoch = epoch
        self._frames_of.clear()

    def knows(self, symbol: str) -> bool:
        return symbol in self._frames_of

    def know(self, last: LastSent) -> None:
        tick = None if last.tick is None else (last.seq, last.tick)
        frames = SymbolFrames(self._max_frames, None, tick, last.ended_at)
        for came_ms, seq, frame in last.before:
            self._now_ms = max(came_ms, self._now_ms)
            frames.add(seq, frame, self._now_ms, self._now_ms - self._keep_ms)
        if frames.head != last.seq:
            frames = SymbolFrames(self._max_frames, last.seq, tick, last.ended_at)
        self._frames_of[last.symbol] = frames

    def begin_series(self, symbol: str, last_tick: NumberedFrame | None) -> None:
        """From now on `last_tick` is shown first: the one before belongs to a series that is over."""
        frames = self._frames_of.get(symbol)
        if frames is not None:
            frames.begin_series(last_tick)

    def add(self, symbol: str, seq: int, frame: bytes, now_ms: int, *, is_tick: bool = True) -> None:
        frames = self._frames_of.get(symbol)
        if frames is None:
            frames = self._frames_of[symbol] = SymbolFrames(self._max_frames)
        self._now_ms = max(now_ms, self._now_ms)
        frames.add(seq, frame, self._now_ms, self._now_ms - self._keep_ms)
        if is_tick:
            frames.last_tick = seq, frame

    def keep(
        self,
        symbol: str,
        seqs: Sequence[int],
        kept: Sequence[bytes],
        came_ms: Sequence[int],
        last_tick: NumberedFrame | None,
    ) -> None:
        """What came before now and was never sent."""
        frames = self._frames_of.get(symbol)
        if frames is None:
            frames = self._frames_of[symbol] = SymbolFrames(self._max_frames)
        self._now_ms = max(came_ms[-1], self._now_ms)
        since_ms = self._now_ms - self._keep_ms
        if seqs[-1] - seqs[0] == len(seqs) - 1:
            frames.add_all(seqs[0], kept, came_ms, since_ms)
        else:
            for seq, each, at_ms in zip(seqs, kept, came_ms, strict=True):
                frames.add_all(seq, (each,), (at_ms,), since_ms)
        frames.last_tick = last_tick or frames.last_tick

    def positions(self, symbols: Collection[str]) -> dict[str, int]:
        """The numbers after which the frames of these symbols, or of all, go on."""
        named = self._frames_of if ALL in symbols else symbols
        found = ((symbol, self._frames_of.get(symbol)) for symbol in sorted(named))
        return {symbol: (frames.head or 0) if frames is not None else 0 for symbol, frames in found}

    def head(self, symbol: str, since_ms: int) -> int:
        """The number of its last frame, if that came since then, else 0."""
        frames = self._frames_of.get(symbol)
        return 0 if frames is None or frames.came_ms < since_ms else frames.head or 0

    def open(
        self,
        subscribed: Subscriptions,
        change: SubscriptionChange,
        resume: Resume | None,
        now_ms: int,
        allowance: ReplayAllowance | None = None,
    ) -> Opening:
        """What is due to a client that has just subscribed. `allowance` counts what it was replayed."""
        named = {} if resume is None else {upper_key(key): seq for key, seq in resume.positions.items()}
        given = {symbol: seq for symbol, seq in named.items() if change.brings(symbol)}
        is_known = resume is not None and resume.epoch == self.epoch
        since_ms = max(now_ms, self._now_ms) - self._keep_ms
        allowance = allowance or ReplayAllowance()
        positions, unrecovered = dict[str, int](), _not_subscribed(named, subscribed, change)
        ticks: list[NumberedFrame] = []
        replay: list[Iterator[KeptFrame]] = []
        symbols = self._frames_of.keys() if subscribed.has_all else subscribed.keys
        for symbol in sorted(filter(self.is_offered, {*symbols, *given})):
            frames = self._frames_of.get(symbol) or SymbolFrames(0)
            positions[symbol] = frames.head or 0
            position = given.get(symbol)
            missed = None
            if position is not None:
                if is_known and self._allows(allowance, frames, position, now_ms):
                    missed = frames.after(position, since_ms, self.make, from_first=self._from_first)
                if missed is None:
                    unrecovered.append(symbol)
                else:
                    positions[symbol] = position
                    replay.append(missed)
            wants_tick = position is not None or "snapshot" in subscribed.features
            if missed is None and wants_tick and change.brings(symbol):
                ticks += self._shown(frames)
        # Sorted by time alone, so that what came together stays in the order of its numbers; and lazily,
        # because it may be half a million frames for 500 symbols.
        merged = merge(*replay, key=itemgetter(0))
        return Opening(
            positions, sorted(unrecovered), chain(ticks, ((seq, frame) for _, seq, frame in merged))
        )

    def _shown(self, frames: SymbolFrames) -> list[NumberedFrame]:
        """The last one, if there is any."""
        if frames.last_tick is None:
            return []
        seq, kept = frames.last_tick
        frame = self.make(kept)
        return [(seq, frame)] if frame else []

    def _allows(self, allowance: ReplayAllowance, frames: SymbolFrames, position: int, now_ms: int) -> bool:
        missed = max(0, (frames.head or 0) - position)
        most = len(self._frames_of) * self._max_frames
        return missed <= self._max_frames and allowance.allows(missed, most, now_ms)
