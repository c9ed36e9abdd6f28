"""Time zones of the chart: offsets over the change of clocks, and where days begin on the axis."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from .modules import evaluate

WEIGHTS = """
const scale = new all.ZonedScale();
scale.zone = new all.Zone("America/New_York");
const points = given.times.map((originalTime) => {
  return { originalTime, time: scale.convertHorzItemToInternal(originalTime), timeWeight: 0 };
});
scale.fillWeightsForPoints(points, given.from);
return points.map(({ timeWeight }) => timeWeight);
"""


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def in_zone(tmp_path: Path, name: str, says: str, given: Any) -> Any:
    body = f"const zone = new all.Zone({name!r}); return given.map((time) => {says});"
    return evaluate(tmp_path, "chart/zone.js", body, given)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("UTC", "UTC"),
        ("America/New_York", "UTC−5"),
        ("Asia/Kolkata", "UTC+5:30"),
        ("Asia/Tokyo", "UTC+9"),
    ],
)
def test_label_says_how_far_from_utc(tmp_path: Path, name: str, label: str) -> None:
    assert in_zone(tmp_path, name, "zone.label(time)", [seconds("2026-11-26T12:00Z")]) == [label]


def test_times_are_those_of_clocks_there(tmp_path: Path) -> None:
    around = [seconds(f"2026-03-29T{clock}Z") for clock in ("00:59", "01:00")]
    assert in_zone(tmp_path, "Europe/Berlin", "zone.offset(time)", around) == [3_600, 7_200]
    moment = [seconds("2026-11-26T02:30Z")]
    assert in_zone(tmp_path, "America/New_York", "zone.moment(time)", moment) == ["Wed 25 Nov 2026 21:30"]


def test_day_begins_on_the_axis_where_it_does_in_the_zone_also_for_bars_that_come_later(
    tmp_path: Path,
) -> None:
    hours = [seconds("2026-11-25T20:00Z") + 3_600 * hour for hour in range(20)]
    at_once, later = (
        evaluate(tmp_path, "chart/zone.js", WEIGHTS, {"times": hours, "from": start}) for start in (0, 7)
    )
    assert hours[at_once.index(max(at_once))] == seconds("2026-11-26T05:00Z")
    assert later == [0] * 7 + at_once[7:]
