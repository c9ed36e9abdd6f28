"""Two files of the same symbol and day, of which each has a part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from archive.manifests import NumberGap

from .parquet import METADATA, write_table


def merged(
    one: Path, other: Path, to: Path, gaps: list[NumberGap]
) -> tuple[Path, int, list[NumberGap], list[str]]:
    """The file that has the ticks of both, each once; its rows, the holes that are left, and its sources."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    tables = [pq.read_table(path) for path in (other, one)]
    about = [msgspec.json.decode(table.schema.metadata[METADATA]) for table in tables]
    plain = [table.replace_schema_metadata(None).unify_dictionaries() for table in tables]
    whole = pa.concat_tables(plain).unify_dictionaries().combine_chunks()
    order = pc.sort_indices(whole, sort_keys=[("time", "ascending"), ("seq", "ascending")])
    whole = whole.take(order)
    seqs = whole["seq"].to_pylist()
    firsts = [place for place, seq in enumerate(seqs) if place == 0 or seq != seqs[place - 1]]
    whole = whole.take(pa.array(firsts))
    write_table(to, whole, _about_both(*about))
    times = whole["time"].cast(pa.int64()).to_pylist()
    kept = {seqs[place] for place in firsts}
    left = [gap for gap in gaps if not _is_filled(gap, times, len(kept))]
    sources = sorted(set(whole["source"].to_pylist()))
    return to, len(firsts), left, sources


def _is_filled(gap: NumberGap, times: list[int], number: int) -> bool:
    """Whether as many ticks as it lacks are there now."""
    inside = sum(gap.start_ms < time_ms < gap.end_ms for time_ms in times)
    return gap.missing is not None and number > 0 and inside >= gap.missing


def _about_both(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    minutes = {each["minute"]: each for each in (*now["minutes"], *before["minutes"])}
    prices = dict.fromkeys([*before["candle_price"], *now["candle_price"]])
    first = before["before"] or now["before"]
    ordered = [minutes[opened_ms] for opened_ms in sorted(minutes)]
    return {**now, "minutes": ordered, "candle_price": list(prices), "before": first}
