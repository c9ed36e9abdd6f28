"""The calibration for staff: the figures of GET /api/news/calibration, read as a table."""

from itertools import groupby
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from msgspec.structs import asdict

from accounts.back_office import staff_page
from news.calibration.figures import ENOUGH, Figures, add_up
from news.calibration.outcomes import MAIN_SYMBOLS

PERMISSION = "news.view_newsitem"


@require_safe
@permission_required(PERMISSION, raise_exception=True)
def calibration_page(request: HttpRequest) -> HttpResponse:
    own = {"at": timezone.now(), "enough": ENOUGH, "tables": tables(add_up())}
    return staff_page(request, "admin/news/calibration.html", "Calibration", **own)


def tables(figures: list[Figures]) -> list[dict[str, Any]]:
    """One table for each category, with a row for each label and horizon."""
    return [
        {"category": category, "symbol": MAIN_SYMBOLS[category], "rows": list(map(texts_of, rows))}
        for category, rows in groupby(figures, key=lambda row: row.category)
    ]


def texts_of(row: Figures) -> dict[str, Any]:
    return {
        **asdict(row),
        "mean": percent(row.mean_move_percent),
        "median": percent(row.median_move_percent),
        "hits": "–" if row.hit_rate is None else f"{row.hit_rate:.0%}",
    }


def percent(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}%".replace("-", "−")
