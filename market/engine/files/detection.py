"""Which format a file has, told by how it begins. Pure."""

from __future__ import annotations

from . import aggtrades, bi5, dukascopy, histdata, quotes, recording
from .format import BadFile, Format

_ALL = (
    bi5.FORMAT,
    quotes.FORMAT,
    histdata.FORMAT,
    aggtrades.FORMAT,
    dukascopy.FORMAT,
    recording.FORMAT,
)
FORMATS = {known.name: known for known in _ALL}


def detect(head: bytes, path: str) -> Format:
    if histdata.are_bars(head):
        raise BadFile(
            f"{path} holds HistData's one-minute bars, and candles are made of ticks here: "
            "download the ticks of the same month (DAT_ASCII_…_T_…)."
        )
    for known in FORMATS.values():
        if known.matches(head, path):
            return known
    samples = "\n".join(f"  {known.name:<10} {known.sample}" for known in FORMATS.values())
    raise BadFile(
        f"{path} begins like none of the formats that are read. "
        f"Name one with --format, or convert it:\n{samples}"
    )
