"""axe-core's rules, on a page as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.programs.npm import require_npm

RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


def axe_source() -> str:
    return (require_npm(Path(__file__).parent / "axe") / "axe-core/axe.min.js").read_text()


def violations(page: Page) -> list[str]:
    # Evaluated and not added as a script: the page's policy would refuse that, and rightly.
    page.evaluate(axe_source())
    options = {"runOnly": {"type": "tag", "values": RULES}}
    found: list[dict[str, Any]] = page.evaluate(
        f"axe.run(document, {json.dumps(options)}).then(({{violations}}) => violations)"
    )
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]
