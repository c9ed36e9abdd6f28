"""The course of a soak as an SVG: a small chart for each kind of figure, a line for each of the kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from .samples import Sample

WIDTH, HEIGHT, LEFT, GAP, COLUMNS = 440, 150, 54, 46, 2
COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#be185d", "#4d7c0f")
STYLE = "text{font:11px system-ui,sans-serif;fill:#444}.title{font-weight:600;fill:#111}"
KINDS = {
    "Memory, MiB": "RSS of ",
    "Descriptors": "descriptors of ",
    "Threads": "threads of ",
    "p99, ms": "p99 of ",
    "Tables, MiB": "table ",
    "Acts in a minute": "acts: ",
    "Given to other machines, % of the cores' time": "time given to ",
}


def picture(samples: Sequence[Sample]) -> str:
    charts = [
        chart(number, title, start, samples)
        for number, (title, start) in enumerate(KINDS.items())
        if any(name.startswith(start) for name in samples[-1].figures)
    ]
    rows = -(-len(charts) // COLUMNS)
    width, height = COLUMNS * (LEFT + WIDTH + GAP), rows * (HEIGHT + 3 * GAP)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    ground = f'<style>{STYLE}</style><rect width="{width}" height="{height}" fill="#fff"/>'
    return "\n".join([head, ground, *charts, "</svg>", ""])


def chart(number: int, title: str, start: str, samples: Sequence[Sample]) -> str:
    names = [name for name in samples[-1].figures if name.startswith(start)]
    last = max(sample.minute for sample in samples) or 1
    top = max((s.figures.get(name, 0) for s in samples for name in names), default=0) * 1.1 or 1
    x0, y0 = LEFT + number % COLUMNS * (LEFT + WIDTH + GAP), GAP + number // COLUMNS * (HEIGHT + 3 * GAP)
    parts = [f'<text class="title" x="{x0}" y="{y0 - 14}">{escape(title)}</text>', *axes(x0, y0, top, last)]
    for place, name in enumerate(names):
        points = [
            f"{x0 + WIDTH * each.minute / last:.1f},{y0 + HEIGHT * (1 - each.figures[name] / top):.1f}"
            for each in samples
            if name in each.figures
        ]
        colour = COLOURS[place % len(COLOURS)]
        line = " ".join(points)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{line}"/>')
        label_x, label_y = x0 + place % 3 * 150, y0 + HEIGHT + 34 + place // 3 * 15
        label = escape(name.removeprefix(start).removesuffix(", MiB"))
        parts.append(f'<text x="{label_x}" y="{label_y}" style="fill:{colour}">{label}</text>')
    return "\n".join(parts)


def axes(x0: float, y0: float, top: float, last: float) -> Iterator[str]:
    for share in (0.0, 0.5, 1.0):
        y = y0 + HEIGHT * (1 - share)
        yield f'<line x1="{x0}" y1="{y}" x2="{x0 + WIDTH}" y2="{y}" stroke="#ddd"/>'
        yield f'<text x="{x0 - 6}" y="{y + 4}" text-anchor="end">{top * share:,.4g}</text>'
    yield f'<text x="{x0 + WIDTH}" y="{y0 + HEIGHT + 16}" text-anchor="end">{last:.0f} min</text>'
