"""Two files of the same symbol and day, of which each has a part."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from archive.manifests import NumberGap

from .parquet import METADATA, write_table


class Merged(NamedTuple):
    path: Path
    rows: int
    gaps: list[NumberGap]
    """Those that neither fills."""
    sources: list[str]


def merged(one: Path, other: Path, to: Path, gaps: Sequence[NumberGap]) -> Merged:
    """The file that has the ticks of both, each once: the one of them to which the other adds nothing, first
    of all `other`, which has been served. `gaps` are those of either."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    opened = [pq.ParquetFile(path) for path in (other, one)]
    about = [msgspec.json.decode(file.metadata.metadata[METADATA]) for file in opened]
    tables = [file.read().replace_schema_metadata(None) for file in opened]
    whole = pa.concat_tables(tables, promote_options="default").unify_dictionaries().combine_chunks()
    order = pc.sort_indices(whole, sort_keys=[("time", "ascending"), ("seq", "ascending")])
    whole = whole.take(order)
    seqs = whole["seq"].to_pylist()
    firsts = [place for place, seq in enumerate(seqs) if place == 0 or seq != seqs[place - 1]]
    whole = whole.take(pa.array(firsts))
    both = _about_both(*about)
    if len(firsts) == opened[0].metadata.num_rows and both == about[0]:
        to = other
    elif len(firsts) == opened[1].metadata.num_rows and both == about[1]:
        to = one
    else:
        write_table(to, whole, both)
    times, seqs = whole["time"].cast(pa.int64()).to_pylist(), [seqs[place] for place in firsts]
    left = [gap for gap in gaps if gap.is_lost or not is_filled(gap, times, seqs)]
    sources = {*whole["source"].to_pylist(), *(minute["source"] for minute in both["minutes"])}
    return Merged(to, len(firsts), left, sorted(sources))


def is_filled(gap: NumberGap, times: Sequence[int], seqs: Sequence[int]) -> bool:
    """Whether the numbers go through from before it to behind it. At an end of the day, where nothing is on
    the other side, there must be as many as it lacks."""
    first, end = bisect_left(times, gap.start_ms), bisect_right(times, gap.end_ms)
    has_sides = first > 0 or (first < end and times[first] == gap.start_ms)
    has_sides &= end < len(times) or (first < end and times[end - 1] == gap.end_ms)
    within = seqs[max(0, first - 1) : end + 1]
    if any(later != seq + 1 for seq, later in pairwise(within)):
        return False
    inside = sum(gap.start_ms < time_ms < gap.end_ms for time_ms in times[first:end])
    return has_sides or inside >= (1 if gap.missing is None else gap.missing)


def _about_both(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    # One that is read again may not know after which tick of the day it came.
    minutes = {each["minute"]: each for each in (*now["minutes"], *before["minutes"])}
    prices = dict.fromkeys([*now["candle_price"], *before["candle_price"]])
    first = now["before"] or before["before"]
    ordered = [minutes[opened_ms] for opened_ms in sorted(minutes)]
    return {**now, "minutes": ordered, "candle_price": list(prices), "before": first}
