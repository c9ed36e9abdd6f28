"""A page in every window: how wide it is, what breaks axe's rules, and a picture to look at."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from playwright.sync_api import Page

from .audit import violations

SCREENSHOTS = Path(settings.BASE_DIR) / "var/screenshots"
SIZES = ((360, 740), (768, 1024), (1440, 900), (2560, 1440))
# Wider windows only leave more room around the same page, and axe takes its time.
AUDITED_UP_TO = 1440


def keep(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def faults(page: Page, name: str, scheme: str) -> list[str]:
    """Of the page as it is, which should be open with that scheme."""
    found = []
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        wide = page.evaluate("document.documentElement.scrollWidth")
        found += [f"{wide} px wide at {width}"] if wide > width else []
        found += violations(page) if width <= AUDITED_UP_TO else []
        keep(page, f"{name}-{width}-{scheme}")
    return found
