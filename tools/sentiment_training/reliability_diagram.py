"""A reliability diagram as SVG: how often the model was right, by how sure it was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .evaluation import Judged

BINS = 10
WIDTH, HEIGHT, LEFT, BOTTOM, SIDE = 520, 420, 64, 352, 320
HEAD = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
    'aria-label="Share of right labels by the model\'s own odds for them" '
    'font-family="system-ui, sans-serif" font-size="12">'
    f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
)


class Bin(NamedTuple):
    odds: float
    share: float
    size: int


def bins_of(judged: Sequence[Judged]) -> list[Bin]:
    bins: list[list[Judged]] = [[] for _ in range(BINS)]
    for each in judged:
        bins[min(BINS - 1, int(max(each.odds) * BINS))].append(each)
    return [
        Bin(
            sum(max(each.odds) for each in part) / len(part),
            sum(each.is_right for each in part) / len(part),
            len(part),
        )
        for part in bins
        if part
    ]


def reliability(judged: Sequence[Judged]) -> str:
    bins = bins_of(judged)
    most = max(each.size for each in bins)
    parts = [HEAD, *grid(), line(0, 0, 1, 1, "#999", "4 4")]
    parts += [column(each, most) for each in bins]
    parts += [
        line(a.odds, a.share, b.odds, b.share, "#0b6", "") for a, b in zip(bins, bins[1:], strict=False)
    ]
    parts += [f'<circle cx="{x(each.odds)}" cy="{y(each.share)}" r="4" fill="#0b6"/>' for each in bins]
    return "\n".join([*parts, "</svg>"]) + "\n"


def grid() -> list[str]:
    parts = []
    for step in range(0, 11, 2):
        value = step / 10
        parts += [
            line(0, value, 1, value, "#e5e5e5", ""),
            f'<text x="{LEFT - 8}" y="{y(value) + 4}" text-anchor="end" fill="#333">{value:.1f}</text>',
            f'<text x="{x(value)}" y="{BOTTOM + 18}" text-anchor="middle" fill="#333">{value:.1f}</text>',
        ]
    middle = LEFT + SIDE / 2
    parts.append(
        f'<text x="{middle}" y="{BOTTOM + 40}" text-anchor="middle" fill="#333">'
        "odds that the model gave its label (grey: how many headlines)</text>"
    )
    parts.append(
        f'<text x="18" y="{BOTTOM - SIDE / 2}" text-anchor="middle" fill="#333" '
        f'transform="rotate(-90 18 {BOTTOM - SIDE / 2})">share that was right</text>'
    )
    return parts


def column(each: Bin, most: int) -> str:
    height = round(each.size / most * SIDE / 3, 1)
    return (
        f'<rect x="{x(each.odds) - 10}" y="{BOTTOM - height}" width="20" height="{height}" fill="#ccc">'
        f"<title>{each.size} headlines: {each.share:.2f} right at odds of {each.odds:.2f}</title></rect>"
    )


def line(x1: float, y1: float, x2: float, y2: float, colour: str, dashes: str) -> str:
    return (
        f'<line x1="{x(x1)}" y1="{y(y1)}" x2="{x(x2)}" y2="{y(y2)}" stroke="{colour}" '
        f'stroke-width="1.5" stroke-dasharray="{dashes}"/>'
    )


def x(value: float) -> float:
    return round(LEFT + value * SIDE, 1)


def y(value: float) -> float:
    return round(BOTTOM - value * SIDE, 1)
