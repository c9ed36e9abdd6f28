"""Randomness without state: bytes and a random walk that anyone can compute for any moment."""

import hashlib
from functools import lru_cache
from itertools import pairwise
from math import sqrt
from statistics import NormalDist

# Periods are powers of two in milliseconds, from half a second to 2.2 years, so that a shift finds the cell.
SHORTEST, LONGEST = 9, 36
BLOCK = 1024

# Slow octaves are straight lines over this many bars, to within a point or two.
GROUP = 16
YEAR_SECONDS = 365.25 * 86_400


def _bell() -> bytes:
    """Maps even bytes to a symmetric normal distribution that fits into a byte."""
    upper = [round(127.5 + 44 * NormalDist().inv_cdf((i + 0.5) / 256)) for i in range(128, 256)]
    return bytes([255 - value for value in reversed(upper)] + upper)


BELL = _bell()
BELL_DEVIATION = sqrt(sum((value - 127.5) ** 2 for value in BELL) / 256)


def derive_key(seed: int, symbol: str, purpose: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{symbol}\0{purpose}".encode()).digest()[:16]


def draw(key: bytes, index: int, size: int) -> bytes:
    return hashlib.shake_128(key + index.to_bytes(8, "big", signed=True)).digest(size)


def stretch(key: bytes, first: int, last: int) -> bytes:
    """Bytes first..last-1 of the endless sequence behind a key."""
    low, high = first // BLOCK, -(-last // BLOCK)
    joined = b"".join([draw(key, block, BLOCK) for block in range(low, high)])
    return joined[first - low * BLOCK : last - low * BLOCK]


def _block(key: bytes, block: int) -> bytes:
    """A block and the first byte of the next one, so that a line never has to look into two."""
    return draw(key, block, BLOCK) + draw(key, block + 1, 1)


_even_block = lru_cache(maxsize=1024)(_block)


# A block of each octave for more than 500 instruments: to make them anew takes ten times as long.
@lru_cache(maxsize=16_384)
def _bell_block(key: bytes, block: int) -> bytes:
    return _block(key, block).translate(BELL)


def byte_at(key: bytes, index: int) -> int:
    return _even_block(key, index // BLOCK)[index % BLOCK]


class Walk:
    """A random walk of log prices: a sum of octaves of value noise, each a straight line from knot to knot.

    With amplitudes that grow as the root of the period, the variance over a time is proportional to it, as
    a random walk's is, yet the sum of all octaves stays bounded: the price never drifts away.
    """

    def __init__(self, seed: int, symbol: str, yearly_volatility: float, origin_ms: int) -> None:
        # The structure function of this sum at a lag of one period comes to 4 deviations squared.
        unit = yearly_volatility / sqrt(YEAR_SECONDS * 1000) / (2 * BELL_DEVIATION)
        self._octaves: list[tuple[int, int, float, bytes]] = []
        for bits in range(SHORTEST, LONGEST + 1):
            key = derive_key(seed, symbol, f"octave {bits}")
            # Each octave starts elsewhere: knots of all octaves at the same moment would show as seams.
            phase = int.from_bytes(draw(key, -1, 8), "big") % (1 << bits)
            self._octaves.append((bits, phase, unit * sqrt(1 << bits), key))
        self._origin = 0.0
        self._origin = self.at(origin_ms)

    def at(self, ms: int) -> float:
        total = -self._origin
        for bits, phase, amplitude, key in self._octaves:
            moment = ms + phase
            block, knot = divmod(moment >> bits, BLOCK)
            knots = _bell_block(key, block)
            left = knots[knot]
            share = (moment & ((1 << bits) - 1)) / (1 << bits)
            total += amplitude * (left + (knots[knot + 1] - left) * share)
        return total

    def bars(self, first: int, last: int, step_ms: int, samples: int) -> list[float]:
        """Values from one bar's open to another's, `samples` a bar, whatever range they are asked in."""
        slow_from = max(SHORTEST, (step_ms * GROUP * 32).bit_length())
        quick_to = max(SHORTEST, step_ms.bit_length())
        low, high = first // GROUP, -(-last // GROUP)
        slow = [-self._origin] * (high - low + 1)
        slow = self._add(slow, low * GROUP * step_ms, step_ms * GROUP, slow_from, LONGEST + 1)
        values = _between(slow, GROUP)[first - low * GROUP : last - low * GROUP + 1]
        values = _between(self._add(values, first * step_ms, step_ms, quick_to, slow_from), samples)
        gap_ms = step_ms // samples
        # What turns 32 times between two samples moves them by a fifth of what is seen at most: left out.
        quick_from = max(SHORTEST, gap_ms.bit_length() - 5)
        return self._add(values, first * step_ms, gap_ms, quick_from, quick_to)

    def at_each(self, moments: list[int], quick_from: int) -> list[float]:
        """Values at moments in their order, without the octaves that are quicker than this one."""
        values = [-self._origin] * len(moments)
        if not moments:
            return values
        for bits, phase, amplitude, key in self._octaves[max(0, quick_from - SHORTEST) :]:
            cell, last = (moments[0] + phase) >> bits, (moments[-1] + phase) >> bits
            knots = stretch(key, cell, last + 2).translate(BELL)
            begin, mask, scale = phase - (cell << bits), (1 << bits) - 1, 1 / (1 << bits)
            values = [
                value
                + amplitude
                * (
                    (left := knots[i := (t := moment + begin) >> bits])
                    + (knots[i + 1] - left) * ((t & mask) * scale)
                )
                for value, moment in zip(values, moments, strict=True)
            ]
        return values

    def _add(self, values: list[float], start: int, step: int, from_bits: int, to_bits: int) -> list[float]:
        for bits, phase, amplitude, key in self._octaves[from_bits - SHORTEST : max(0, to_bits - SHORTEST)]:
            begin = start + phase
            cell = begin >> bits
            end = begin + step * len(values)
            knots = stretch(key, cell, (end >> bits) + 2).translate(BELL)
            begin -= cell << bits
            mask, scale = (1 << bits) - 1, 1 / (1 << bits)
            moments = range(begin, begin + step * len(values), step)
            values = [
                value
                + amplitude * ((left := knots[i := t >> bits]) + (knots[i + 1] - left) * ((t & mask) * scale))
                for value, t in zip(values, moments, strict=True)
            ]
        return values


def _between(knots: list[float], parts: int) -> list[float]:
    """Straight lines from knot to knot, in so many parts each."""
    shares = [part / parts for part in range(parts)]
    line = [left + (right - left) * share for left, right in pairwise(knots) for share in shares]
    return [*line, knots[-1]]
