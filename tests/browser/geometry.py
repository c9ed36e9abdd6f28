"""Where things stand on a page: what overlaps, is cut off, or reaches beyond what it stands in."""

from __future__ import annotations

from collections.abc import Iterator

from playwright.sync_api import Page

FAULTS = """
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


def misplaced(page: Page, containers: str, parts: str) -> list[str]:
    """Within each container, the parts that overlap, do not fit or stick out."""
    found: list[str] = page.evaluate(FAULTS, [containers, parts])
    return found


def resize(page: Page, width: int, height: int) -> None:
    """And wait until the page is drawn in its new size, in its own font."""
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate("document.fonts.ready")
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")


def widths(page: Page, *all_widths: int, height: int = 900) -> Iterator[int]:
    """The page in one window after the other."""
    for width in all_widths:
        resize(page, width, height)
        yield width


LINES = """
(parts) => [...document.querySelectorAll(parts)].filter((part) => {
  const text = document.createRange();
  text.selectNodeContents(part);
  const lines = [...text.getClientRects()].filter((rect) => rect.width > 1).sort((a, b) => a.top - b.top);
  return lines.some((line, at) => at && line.top >= lines[at - 1].bottom - 2);
}).map((part) => `${part.className || part.tagName} “${part.textContent.trim()}”`)
"""


def broken(page: Page, parts: str) -> list[str]:
    """Those that take more than one line."""
    found: list[str] = page.evaluate(LINES, parts)
    return found


SIZES = ((360, 740), (768, 1024), (1440, 900), (2560, 1300))


def faults_of_sizes(page: Page, containers: str, parts: str) -> list[str]:
    """Of the page in every window: what makes it scroll sideways, overlaps or is cut off."""
    found = []
    for width, height in SIZES:
        resize(page, width, height)
        wide = page.evaluate("document.documentElement.scrollWidth")
        found += [f"{wide} px wide at {width}"] if wide > width else []
        found += [f"{fault} at {width}" for fault in misplaced(page, containers, parts)]
    return found
