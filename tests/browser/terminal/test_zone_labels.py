"""Labels of zones in a crowd: a signal has one, is counted in one, or is told where one points at it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from instruments.models import Instrument
from tests.browser.conftest import OpenPage, beside
from tests.contract.streams.ticker import Ticker
from tests.factories import make_signal

from .conftest import of_chart, opened, until_chart

CROWD = """async () => {
    const { Crowd } = await import("/static/terminal/chart/zones/crowd.js");
    const crowd = new Crowd();
    const shape = (id, x, more = {}) => ({
        id, signal: { direction: "buy", user: id, status: "active" }, isBuy: true, outcome: "active",
        marks: [], left: x, right: 400, paidY: 60, anchor: { x, y: 60 }, ...more,
    });
    const area = { x: 0, y: 0, width: 400, height: 60 };
    const arrange = (shapes, obstacles = []) => {
        crowd.arrange(shapes, obstacles, area, { font: "500 11px sans-serif", highlighted: null });
        return crowd.placed;
    };
    const near = [..."abcdefghijkl"].map((id, at) => shape(id, 200 + at));
    const wall = { x: 0, y: 0, width: 170, height: 60 };
    const crowded = arrange(near, [wall]);
    const group = crowded.at(-1);
    const found = crowd.at({ x: group.x + 5, y: group.y + 5 }, near);
    const tip = crowd.tip(found, near).lines;
    const began = arrange([shape("long_ago", -500, { anchor: null, left: 0, paidY: -90 })]);
    const mark = { x: 300, y: 20, width: 10, height: 10 };
    const full = [shape("g", 305, { marks: [mark] })];
    const none = arrange(full, [area]).length;
    const pointed = crowd.at({ x: 305, y: 25 }, full);
    const [long] = arrange([shape("Walker_Three_With_Long_Name_30", 200)]);
    return {
        texts: crowded.map(({ text }) => text), ids: group.ids, found: found.ids, tip,
        began: began.map(({ text, x }) => [text, x]),
        long: long.text, none,
        pointed: crowd.tip(pointed, full).lines, beside: crowd.at({ x: 20, y: 25 }, full),
    };
}"""


# Lines that lead from a label to its mark: at it, beside it at the same height, and below it.
LEADERS = """async () => {
    const { paintLabels } = await import("/static/terminal/chart/zones/painting.js");
    const drawn = [];
    const get = (_, name) => () => drawn.push(name);
    const pen = new Proxy({}, { get, set: () => true });
    const about = { id: 1, text: "Buy a", outcome: "won", width: 60, height: 18, anchor: { x: 100, y: 100 } };
    const label = (x, y) => ({ ...about, x, y });
    const tint = { up: "green", surface: "white" };
    const ledTo = (x, y) => {
        drawn.length = 0;
        paintLabels(pen, [label(x, y)], { tint, lit: null, font: "" });
        return drawn.includes("lineTo");
    };
    paintLabels(pen, [label(170, 94), label(70, 140)], { tint, lit: null, font: "" });
    const isBelow = drawn.lastIndexOf("lineTo") < drawn.indexOf("fillText");
    return { near: ledTo(70, 106), beside: ledTo(170, 94), below: ledTo(70, 140), isBelow };
}"""


def test_label_away_from_its_mark_is_led_to_it_and_no_line_crosses_a_label(open_page: OpenPage) -> None:
    assert open_page("/docs").evaluate(LEADERS) == {
        "near": False,
        "beside": True,
        "below": True,
        "isBelow": True,
    }


def test_labels_without_room_are_counted_and_told_where_one_points(open_page: OpenPage) -> None:
    found = open_page("/docs").evaluate(CROWD)

    assert found["texts"][-1] == f"{len(found['ids'])} more"
    assert len(found["texts"]) - 1 + len(found["ids"]) == 12
    assert found["found"] == found["ids"]
    assert found["tip"] == [f"Buy {user}" for user in found["ids"]]
    assert found["began"] == [["‹ Buy long_ago", 0]]
    assert found["long"] == "Buy Walker_Three_With_L…"
    assert (found["none"], found["pointed"], found["beside"]) == (0, ["Buy g"], None)


def test_zone_that_fills_the_pane_has_its_label_at_the_edge(
    charted: Ticker, publisher: User, open_page: OpenPage
) -> None:
    levels = {"entry": Decimal("0.5"), "stop_loss": Decimal("0.4"), "take_profit": Decimal("9")}

    def begun_long_ago() -> Any:
        instrument = Instrument.objects.get(symbol="BTCUSD")
        began = timezone.now() - timedelta(days=2)
        return make_signal(instrument=instrument, user=publisher, published_at=began, **levels)

    beside(begun_long_ago)
    page = opened(open_page)
    expect(page.locator("#signals li.signal")).to_have_count(1)

    until_chart(page, "chart.zones.labels.length === 1")

    ((text, x, y),) = of_chart(page, "chart.zones.labels.map(({ text, x, y }) => [text, x, y])")
    assert text == "‹ Buy marta"
    assert x < 10
    legend = page.locator(".price .legend").bounding_box()
    plot = page.locator(".price .plot").bounding_box()
    assert legend is not None
    assert plot is not None
    assert plot["y"] + y >= legend["y"] + legend["height"]
