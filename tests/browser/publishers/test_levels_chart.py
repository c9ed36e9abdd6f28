"""The chart beside the form on which signals are published: levels that it has no room for, and its scale."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.looks import misplaced
from tests.browser.test_publishing import BARS, anna, fill, log_in

__all__ = ("anna",)


def test_level_off_the_scale_is_marked_as_such(open_page: OpenPage) -> None:
    page = open_page()
    log_in(page)
    chart = page.get_by_role("img", name="Candles of EURUSD")
    expect(chart.locator("rect.up, rect.down")).to_have_count(BARS)
    fill(page, stop_loss="0.5", take_profit="2.5")
    expect(chart.locator("text.label.target")).to_have_text("↑ 2.50000")
    expect(chart.locator("text.label.stop")).to_have_text("↓ 0.50000")
    expect(chart.locator("text.label.entry")).to_have_text("1.08424")
    expect(chart.locator("line.target, line.stop")).to_have_count(0)
    expect(chart.locator("line.entry")).to_have_count(1)
    assert misplaced(page, "[data-chart]", "text.label") == []
    edges = """(chart) => ["rect.risk", "rect.reward", "text.time"]
        .map((each) => chart.querySelector(each).getBoundingClientRect())
        .map(({ top, bottom }) => [top, bottom])"""
    (_, risk_ends), (reward_begins, _), (times_begin, _) = chart.evaluate(edges)
    assert reward_begins >= chart.evaluate("(chart) => chart.getBoundingClientRect().top")
    assert risk_ends <= times_begin


CHEAP = """async (low) => {
    const { LevelsChart } = await import("/static/signals_feed/publish/chart.js");
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.style.width = svg.style.height = "400px";
    document.body.append(svg);
    const bar = { time: "2026-11-27T12:00:00Z", open: 2, high: 3, low, close: 2 };
    const chart = new LevelsChart(svg, async () => ({ ohlcv: [bar] }));
    await chart.show("NEWUSD", "15m");
    chart.setQuote(2, 2);
    chart.setLevels({ entry: 2, stop: 0, target: 0 });
    return [...svg.querySelectorAll("text:not(.time)")].map((text) => text.textContent);
}"""


@pytest.mark.parametrize("low", [1.5, 0.01])
def test_scale_reaches_down_to_the_candles_and_never_below_zero(open_page: OpenPage, low: float) -> None:
    prices = [float(text) for text in open_page("/docs").evaluate(CHEAP, low)]
    assert len(prices) > 3
    # A field that is empty is no level at zero.
    assert min(prices) >= max(0, low - 0.1)
