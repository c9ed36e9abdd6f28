"""How a page looks: what overlaps, is cut off, makes it scroll sideways or breaks axe-core's rules."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.programs.npm import require_npm

RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
SIZES = ((360, 740), (768, 1024), (1440, 900), (2560, 1440))
GROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(245, 247, 249)", "rgb(13, 18, 23)"
WIDE = "document.documentElement.scrollWidth"
MISPLACED = """
([containers, parts]) => [...document.querySelectorAll(containers)].flatMap((container) => {
  const shown = [...container.querySelectorAll(parts)].filter((part) => part.getClientRects().length);
  const boxes = shown.map((part) => [part, part.getBoundingClientRect()]);
  const named = (part) => `${part.className || part.tagName} “${part.textContent.trim().slice(0, 30)}”`;
  const overlapping = boxes.flatMap(([part, box], at) => boxes.slice(at + 1)
    .filter(([other]) => !part.contains(other) && !other.contains(part))
    .filter(([, other]) => box.left < other.right - 1 && other.left < box.right - 1
      && box.top < other.bottom - 1 && other.top < box.bottom - 1)
    .map(([other]) => `${named(part)} overlaps ${named(other)}`));
  const cut = shown.filter((part) => part.scrollWidth > part.clientWidth + 1 && part.clientWidth)
    .map((part) => `${named(part)} is cut off`);
  const frame = container.getBoundingClientRect();
  const beyond = boxes.filter(([, box]) => box.left < frame.left - 1 || box.right > frame.right + 1
    || box.top < frame.top - 1 || box.bottom > frame.bottom + 1).map(([part]) => `${named(part)} sticks out`);
  return [...overlapping, ...cut, ...beyond];
})
"""
BROKEN = """
(parts) => [...document.querySelectorAll(parts)].filter((part) => {
  const text = document.createRange();
  text.selectNodeContents(part);
  const lines = [...text.getClientRects()].filter((rect) => rect.width > 1).sort((a, b) => a.top - b.top);
  return lines.some((line, at) => at && line.top >= lines[at - 1].bottom - 2);
}).map((part) => `${part.className || part.tagName} “${part.textContent.trim()}”`)
"""


@cache
def axe_source() -> str:
    return (require_npm(Path(__file__).parent / "axe") / "axe-core/axe.min.js").read_text()


def violations(page: Page) -> list[str]:
    # Evaluated and not added as a script: the page's policy would refuse that, and rightly.
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(axe_source())
    found: list[dict[str, Any]] = page.evaluate(
        "(values) => axe.run(document, { runOnly: { type: 'tag', values } }).then((all) => all.violations)",
        RULES,
    )
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


def misplaced(page: Page, containers: str, parts: str) -> list[str]:
    """Within each container, the parts that overlap, do not fit or stick out."""
    found: list[str] = page.evaluate(MISPLACED, [containers, parts])
    return found


def broken(page: Page, parts: str) -> list[str]:
    """Those that take more than one line."""
    found: list[str] = page.evaluate(BROKEN, parts)
    return found


def resize(page: Page, width: int, height: int = 900) -> None:
    """And wait until the page is drawn in its new size, in its own font."""
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate("document.fonts.ready")
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")


def widths(page: Page, *all_widths: int) -> Iterator[int]:
    """The page in one window after the other."""
    for width in all_widths:
        resize(page, width)
        yield width


def faults(page: Page, containers: str = "", parts: str = "") -> list[str]:
    """Of the page in every window, and by axe's rules on a phone in light colours and wide in dark ones."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    found = []
    for width, height in SIZES:
        resize(page, width, height)
        wide = page.evaluate(WIDE)
        found += [f"{wide} px wide at {width}"] if wide > width else []
        if containers:
            found += [f"{fault} at {width}" for fault in misplaced(page, containers, parts)]
        if width == SIZES[0][0]:
            found += violations(page)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    resize(page, 1440)
    assert page.evaluate(GROUND) == DARK
    return found + violations(page)
