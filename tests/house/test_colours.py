"""Every colour has a name, in static/site/tokens.css, and one value for each theme."""

from __future__ import annotations

import re
from pathlib import Path

TOKENS = Path("static/site/tokens.css")
RAW = re.compile(r":[^;{}]*?(#[0-9a-f]{3,8}\b|\b(?:rgba?|hsla?|oklch)\()", re.IGNORECASE)


def test_no_style_sheet_mixes_a_colour_of_its_own() -> None:
    sheets = [path for path in Path().glob("**/static/**/*.css") if "vendor" not in path.parts]
    mixed = {
        str(path): colours
        for path in sheets
        if path != TOKENS and not path.parts[0].startswith((".", "var"))
        if (colours := RAW.findall(path.read_text()))
    }
    assert TOKENS in sheets
    assert not mixed, f"{mixed}: give it a name in {TOKENS}"
