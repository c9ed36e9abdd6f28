"""Ticks from lines: a block at once, and line by line only where the block holds a bad one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from market.prices.ticks import Tick

from .format import Batch, Place

Parse = Callable[[str], list[Tick]]
"""One tick for each line, or one of `NO_TICK` if any line makes none."""
# msgspec's errors are ValueErrors, but for lines nested too deeply.
NO_TICK = (ValueError, KeyError, OverflowError, RecursionError)


def columns(text: str) -> Iterator[tuple[str, ...]]:
    """The columns of comma-separated lines, which must all have the same number of them."""
    # Python takes 1_0 for 10.
    if "_" in text:
        raise ValueError("an underscore")
    return zip(*[line.split(",") for line in text.split("\n")], strict=True)


def read_lines(
    blocks: Iterable[bytes], parse: Parse, start: Place, is_header: Callable[[str], bool] = lambda line: False
) -> Iterator[Batch]:
    offset, number = start
    for block in blocks:
        text = block.decode("utf-8-sig" if offset == 0 else "utf-8", "replace")
        text = text.replace("\r", "").removesuffix("\n")
        place, first = Place(offset, number), number
        offset, number = offset + len(block), number + text.count("\n") + 1
        if first == 1 and is_header(text.partition("\n")[0]):
            text, first = text.partition("\n")[2], 2
        if text:
            yield _batch(text, parse, first)._replace(place=place)


def _batch(text: str, parse: Parse, first: int) -> Batch:
    try:
        ticks = parse(text)
    except NO_TICK:
        ticks = []
    # JSON skips blank lines, and then the numbers would not fit.
    if len(ticks) == text.count("\n") + 1:
        return Batch(ticks, range(first, first + len(ticks)))
    return _line_by_line(text, parse, first)


def _line_by_line(text: str, parse: Parse, first: int) -> Batch:
    ticks, lines, malformed = list[Tick](), list[int](), list[int]()
    for number, line in enumerate(text.split("\n"), first):
        if not line.strip():
            continue
        try:
            ticks += parse(line)
            lines.append(number)
        except NO_TICK:
            malformed.append(number)
    return Batch(ticks, lines, malformed)
