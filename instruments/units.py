"""In which unit a market counts what a trade gained."""

import re
from typing import Literal

Unit = Literal["pips", "points", "percent"]
METAL = re.compile("X(AU|AG|PT|PD)")


def counted_in(symbol: str, type: str) -> Unit:
    """Currencies and metals in pips, indices in points of the price, everything else in percent."""
    if type == "forex" or METAL.match(symbol):
        return "pips"
    return "points" if type == "index" else "percent"
