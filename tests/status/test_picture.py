from datetime import UTC, datetime, timedelta

from status.picture import HEIGHT, WIDTH, LatencyMinute, latency_picture

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def test_slowest_value_touches_the_top() -> None:
    drawn = latency_picture([LatencyMinute(NOW - timedelta(minutes=30), 1, 20, 50)], NOW)
    assert drawn.top_ms == 50
    assert drawn.lines[2].points == f"{WIDTH / 2:.1f},0.0"


def test_quick_minutes_do_not_fill_the_picture() -> None:
    drawn = latency_picture([LatencyMinute(NOW, 1, 1, 1)], NOW)
    assert drawn.lines[0].points == f"{WIDTH:.1f},{HEIGHT * 0.9:.1f}"


def test_minutes_without_listeners_have_no_point() -> None:
    assert [line.points for line in latency_picture([LatencyMinute(NOW, None, None, None)], NOW).lines] == [
        "",
        "",
        "",
    ]
