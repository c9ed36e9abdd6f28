"""A page in every window: how wide it is, and what breaks axe's rules; with PICTURES=1 a picture of each."""

from __future__ import annotations

import os
from pathlib import Path

from django.conf import settings
from playwright.sync_api import Page

from .audit import violations

SCREENSHOTS = Path(settings.BASE_DIR) / "var/screenshots"
SIZES = ((360, 740), (768, 1024), (1440, 900), (2560, 1440))
# Between them and beyond there is only more room around the same parts, and axe takes its time.
AUDITED = (360, 1440)
# What depends on the scheme.
COLOURS = ("color-contrast", "link-in-text-block")


def keep(page: Page, name: str) -> None:
    if not os.environ.get("PICTURES"):
        return
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def faults(page: Page, name: str, scheme: str) -> list[str]:
    """Of the page as it is, which should be open with that scheme."""
    found = []
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        wide = page.evaluate("document.documentElement.scrollWidth")
        found += [f"{wide} px wide at {width}"] if wide > width else []
        if width in AUDITED:
            found += violations(page, *(COLOURS if scheme == "dark" else ()))
        keep(page, f"{name}-{width}-{scheme}")
    return found
