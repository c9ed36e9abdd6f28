"""The chart, whose modules run in Node: how it walks back through what is stored, its indicators against
figures that others have published, and its time zones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.programs.npm import NO_NODE

STATIC = Path("static").resolve()
RUN = """
const { default: run } = await import(process.argv[2]);
process.stdout.write(JSON.stringify(await run(JSON.parse(process.argv[3])) ?? null));
"""


def evaluate(folder: Path, module: str, body: str, given: Any = None) -> Any:
    """What the body of a function answers that has all exports of a module, and `given`."""
    if not shutil.which("node"):
        if os.environ.get("CI"):
            raise RuntimeError(NO_NODE)
        pytest.skip(NO_NODE)
    if not (folder / "static").exists():
        (folder / "static").symlink_to(STATIC)
        (folder / "package.json").write_text('{"type": "module"}')
    (folder / "run.js").write_text(RUN)
    (folder / "body.js").write_text(
        f'import * as all from "./static/terminal/{module}";\nexport default async (given) => {{ {body} }};\n'
    )
    # Files count as modules by the folder that they are reached through.
    command = [
        "node",
        "--preserve-symlinks",
        "--preserve-symlinks-main",
        str(folder / "run.js"),
        str(folder / "body.js"),
        json.dumps(given),
    ]
    done = subprocess.run(command, timeout=PATIENCE_S, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


# A service with these minutes, which answers as /history does.
WALK = """
const { barsBefore } = all;
const asked = [];
const ask = async (start, end) => {
  asked.push([start, end]);
  const within = given.minutes.filter((minute) => 60000 * minute >= start && 60000 * minute < end);
  const page = within.slice(0, 1000);
  const ohlcv = page.map((minute) => ({ time: new Date(60000 * minute).toISOString(), close: 1 }));
  return { ohlcv, next: within.length > page.length ? "more" : null };
};
const bars = await barsBefore(ask, 60000 * given.before, 60000, 60000 * given.first);
return { minutes: bars.map(({ time }) => time / 60), asked };
"""
JOIN = """
const [before, now] = given.map((times) => times.map((time) => ({ time })));
return all.joined(before, now).map(({ time }) => time);
"""


@pytest.fixture
def walk(tmp_path: Path) -> Any:
    def run(minutes: list[int], before: int, first: int | None = None) -> Any:
        given = {"minutes": minutes, "before": before, "first": minutes[0] if first is None else first}
        return evaluate(tmp_path, "chart/history.js", WALK, given)

    return run


def test_a_thousand_bars_before_are_one_request(walk: Any) -> None:
    found = walk(list(range(5_000)), before=4_000)

    assert found["minutes"] == list(range(3_000, 4_000))
    assert len(found["asked"]) == 1


def test_weekend_is_crossed_in_ever_wider_windows(walk: Any) -> None:
    friday = list(range(2_000))

    found = walk(friday + list(range(5_500, 6_000)), before=5_500)

    assert found["minutes"] == friday
    assert [start // 60_000 for start, _ in found["asked"][:3]] == [4_500, 2_500, 0]


def test_window_of_several_pages_is_read_to_its_end(walk: Any) -> None:
    found = walk(list(range(3_000)), before=6_999)

    assert found["minutes"] == list(range(3_000))
    assert found["asked"][-1][0] == 60_000 * 1_999 + 1


def test_walk_ends_where_nothing_is_left(walk: Any) -> None:
    assert walk(list(range(100)), before=0)["minutes"] == []
    assert walk([5_000], before=5_000, first=0)["minutes"] == []


@pytest.mark.parametrize(
    ("before", "now", "shown"), [([1, 2, 3, 4], [3, 4, 5], [1, 2, 3, 4, 5]), ([1, 2], [4, 5], [4, 5])]
)
def test_older_bars_stay_unless_others_are_missing_in_between(
    tmp_path: Path, before: list[int], now: list[int], shown: list[int]
) -> None:
    assert evaluate(tmp_path, "chart/history.js", JOIN, [before, now]) == shown


ALONG = """
const { INDICATORS } = all;
const { Running } = await import("./static/terminal/chart/indicators/running.js");
const indicator = INDICATORS.find(({ name }) => name === given.name);
return new Running(indicator, { ...indicator.settings, ...given.settings }).along(given.bars);
"""
# As ticks come: every bar is first another one, and the last is looked at alone.
LIVE = """
const { INDICATORS } = all;
const { Running } = await import("./static/terminal/chart/indicators/running.js");
return INDICATORS.map((indicator) => {
  const running = new Running(indicator, indicator.settings), bars = [];
  for (const bar of given.bars) {
    bars.push({ ...bar, close: bar.low, volume: 1 });
    running.along(bars, bars.length - 1);
    bars[bars.length - 1] = bar;
    running.along(bars, bars.length - 1);
  }
  const whole = new Running(indicator, indicator.settings).along(given.bars);
  return [indicator.name, JSON.stringify(running.values) === JSON.stringify(whole)];
});
"""
# StockCharts, ChartSchool: "Moving Averages" and "Relative Strength Index (RSI)".
AVERAGED = (
    *(22.27, 22.19, 22.08, 22.17, 22.18, 22.13, 22.23, 22.43, 22.24, 22.29),
    *(22.15, 22.39, 22.38, 22.61, 23.36),
)
STRONG = (
    *(44.34, 44.09, 44.15, 43.61, 44.33, 44.83, 45.10, 45.42, 45.84, 46.08),
    *(45.89, 46.03, 45.61, 46.28, 46.28, 46.00, 46.03, 46.41, 46.22, 45.64),
)
Bars = list[dict[str, float]]


def bars(closes: tuple[float, ...], *, every_s: int = 60, volumes: tuple[float, ...] = ()) -> Bars:
    names = ("time", "open", "high", "low", "close", "volume")
    return [
        dict(zip(names, (at * every_s, close, close + 1, close - 1, close, volume), strict=True))
        for at, (close, volume) in enumerate(zip(closes, volumes or [1.0] * len(closes), strict=True))
    ]


@pytest.fixture
def along(tmp_path: Path) -> Any:
    def run(name: str, given: Bars, **settings: int) -> Bars:
        asked = {"name": name, "bars": given, "settings": settings}
        found: Bars = evaluate(tmp_path, "chart/indicators/index.js", ALONG, asked)
        return found

    return run


def line(found: Bars, name: str) -> list[float]:
    return [round(each[name], 2) for each in found if name in each]


def test_averages_are_what_chartschool_has(along: Any) -> None:
    simple = along("sma", bars(AVERAGED), length=10)
    assert line(simple, "average") == [22.22, 22.21, 22.23, 22.26, 22.3, 22.42]
    assert not any("average" in each for each in simple[:9])
    exponential = along("ema", bars(AVERAGED), length=10)
    assert line(exponential, "average") == [22.22, 22.21, 22.24, 22.27, 22.33, 22.52]


def test_bollinger_bands_are_two_deviations_away(along: Any) -> None:
    last = along("bollinger", bars(AVERAGED), length=10, deviations=2)[-1]

    closes = AVERAGED[-10:]
    assert last["middle"] == pytest.approx(fmean(closes))
    assert last["upper"] == pytest.approx(fmean(closes) + 2 * pstdev(closes))
    assert last["lower"] == pytest.approx(fmean(closes) - 2 * pstdev(closes))


def test_vwap_weighs_by_volume_and_begins_again_each_day(along: Any) -> None:
    found = along("vwap", bars((10.0, 20.0, 40.0), every_s=43_200, volumes=(1.0, 3.0, 2.0)))
    assert line(found, "average") == [10.0, 17.5, 40.0]
    assert along("vwap", bars((10.0,), volumes=(0.0,))) == [{}]


def test_rsi_is_what_chartschool_has(along: Any) -> None:
    assert line(along("rsi", bars(STRONG)), "strength") == [70.46, 66.25, 66.48, 69.35, 66.29, 57.92]


@pytest.mark.parametrize(("closes", "strength"), [((1, 2, 3), 100), ((3, 2, 1), 0), ((2, 2, 2), 50)])
def test_rsi_of_one_direction_ends_at_a_bound(along: Any, closes: tuple[float, ...], strength: float) -> None:
    assert along("rsi", bars(closes), length=2)[-1] == {"strength": strength}


def exponential(values: list[float], length: int) -> list[float]:
    found = [fmean(values[:length])]
    for value in values[length:]:
        found.append(found[-1] + 2 / (length + 1) * (value - found[-1]))
    return found


def test_macd_is_the_difference_of_two_averages_and_its_own(along: Any) -> None:
    closes = tuple(100 + (at * 37 % 23) - at / 3 for at in range(60))

    last = along("macd", bars(closes))[-1]

    fast, slow = (exponential(list(closes), length) for length in (12, 26))
    lines = [one - other for one, other in zip(fast[14:], slow, strict=True)]
    assert last["macd"] == pytest.approx(lines[-1])
    assert last["signal"] == pytest.approx(exponential(lines, 9)[-1])
    assert last["difference"] == pytest.approx(lines[-1] - exponential(lines, 9)[-1])


def test_bar_by_bar_is_the_same_as_all_at_once(tmp_path: Path) -> None:
    closes = tuple(100 + (at * 37 % 23) / 7 for at in range(200))
    volumes = tuple(float(at % 5) for at in range(200))
    run = partial(evaluate, tmp_path, "chart/indicators/index.js", LIVE)

    found = run({"bars": bars(closes, every_s=3_600, volumes=volumes)})

    assert dict(found) == dict.fromkeys(["sma", "ema", "bollinger", "vwap", "rsi", "macd"], True)


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
    [("UTC", "UTC"), ("America/New_York", "UTC−5"), ("Asia/Kolkata", "UTC+5:30"), ("Asia/Tokyo", "UTC+9")],
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
