"""axe-core's rules, on a page as it is."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.programs.npm import require_npm

RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


@cache
def axe_source() -> str:
    return (require_npm(Path(__file__).parent / "axe") / "axe-core/axe.min.js").read_text()


def violations(page: Page, *rules: str) -> list[str]:
    """Of all rules, or of those that are named."""
    # Evaluated and not added as a script: the page's policy would refuse that, and rightly.
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(axe_source())
    only = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": RULES}
    found: list[dict[str, Any]] = page.evaluate(
        "(runOnly) => axe.run(document, { runOnly }).then(({ violations }) => violations)", only
    )
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]
