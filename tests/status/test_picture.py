from datetime import UTC, datetime, timedelta

import pytest

from status.picture import HEIGHT, WIDTH, LatencyMinute, latency_picture, round_up

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def ago(minutes: int, p50: int | None = 1, p95: int | None = 1, p99: int | None = 1) -> LatencyMinute:
    return LatencyMinute(NOW - timedelta(minutes=minutes), p50, p95, p99)


def paths(*minutes: LatencyMinute) -> list[str]:
    return [line.path for line in latency_picture(minutes, NOW).lines]


def test_slowest_value_touches_the_top_and_the_axis_of_time_spans_the_hour() -> None:
    drawn = latency_picture([ago(30, 1, 20, 50), ago(29, 1, 20, 50)], NOW)
    assert (drawn.top_ms, drawn.half_ms) == (50, 25)
    assert drawn.lines[2].path.startswith(f"M{WIDTH / 2:.1f},0.0L")
    assert [f"{at:%H:%M}" for at in drawn.times] == ["11:00", "11:15", "11:30", "11:45", "12:00"]


@pytest.mark.parametrize(("value", "top"), [(1, 10), (10, 10), (11, 20), (34, 50), (51, 100), (1001, 2000)])
def test_axis_ends_at_a_round_number(value: int, top: int) -> None:
    assert round_up(value) == top


def test_minute_alone_is_a_dot_and_a_line_ends_where_one_is_missing() -> None:
    drawn = latency_picture([ago(5), ago(2), ago(1)], NOW).lines[0]
    # Quick minutes do not fill the picture.
    assert (drawn.path.count("M"), drawn.dots) == (1, f"M{WIDTH * 55 / 60:.1f},{HEIGHT * 0.9:.1f}h0")
    broken = paths(ago(5), ago(4), ago(2), ago(1))[0]
    assert (broken.count("M"), broken.count("L")) == (2, 2)
    assert paths(ago(0, None, None, None)) == ["", "", ""]
