"""`make bench-terminal`: how soon the terminal is live, and how smooth it stays at 200 ticks a second."""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Response, sync_playwright

from tests.browser.chromium import LAUNCH_ARGS, require_chromium
from tests.patience import wait_until
from tests.programs.running import Serve

TICKS_A_SECOND = "200"
TRACED_S = 60
LONG_FRAME_MS = 50
CHART = "lightweight-charts"
# What was painted and what moved, as the browser itself saw it.
OBSERVE = """
window.seen = { shift: 0, long: [] };
const observe = (type, take) =>
  new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true });
observe("layout-shift", ({ value, hadRecentInput }) => { seen.shift += hadRecentInput ? 0 : value; });
observe("longtask", ({ duration }) => { seen.long.push(Math.round(duration)); });
"""
FRAMES = """(seconds) => new Promise((done) => {
  seen.long = [];
  const gaps = [], end = performance.now() + 1000 * seconds;
  let last = performance.now(), frames = 0;
  requestAnimationFrame(function step(now) {
    gaps.push(now - last); last = now; frames += 1;
    if (now < end) return requestAnimationFrame(step);
    const over = gaps.filter((gap) => gap > 50).length;
    done({ frames, longest: Math.max(...gaps), over, tasks: seen.long });
  });
})"""
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        var_dir = Path(folder) / "var"
        var_dir.mkdir()
        with (
            Serve(var_dir, DEMO_RATE=TICKS_A_SECOND, ACCESS_LOG="0") as server,
            sync_playwright() as playwright,
        ):
            # It is made beside the service, and would be measured with it.
            wait_until(lambda: "The demo's past is complete" in server.output)
            browser = playwright.chromium.launch(executable_path=require_chromium(), args=[*LAUNCH_ARGS])
            report(measure(browser, server.url))
            browser.close()


def measure(browser: Browser, url: str) -> dict[str, Any]:
    scripts: dict[str, bytes] = {}
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.add_init_script(OBSERVE)
    page.on("response", lambda answer: keep_script(answer, scripts))
    began_at = time.monotonic()
    page.goto(url)
    page.wait_for_selector("[data-status=live]")
    live_s = time.monotonic() - began_at
    page.wait_for_timeout(3_000)
    return {
        "live_s": live_s,
        "paint_ms": page.evaluate(FIRST_PAINT),
        "shift": page.evaluate("seen.shift"),
        "own_kb": size_kb(scripts, is_chart=False),
        "chart_kb": size_kb(scripts, is_chart=True),
        **traced(page),
    }


def traced(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.evaluate(FRAMES, TRACED_S)
    return found


def keep_script(answer: Response, scripts: dict[str, bytes]) -> None:
    if answer.request.resource_type == "script" and answer.ok:
        scripts[answer.url] = answer.body()


def size_kb(scripts: dict[str, bytes], *, is_chart: bool) -> float:
    return sum(len(gzip.compress(body)) for url, body in scripts.items() if (CHART in url) is is_chart) / 1024


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def report(found: dict[str, Any]) -> None:
    say(f"Live after {found['live_s']:.2f} s (goal 2), first paint after {found['paint_ms']:.0f} ms")
    say(f"Layout shift {found['shift']:.4f} (good is below 0.1)")
    say(f"Scripts {found['own_kb']:.1f} KB gzipped (goal 150) and the chart's {found['chart_kb']:.1f} KB")
    at = f"{TRACED_S} s at {TICKS_A_SECOND} ticks/s"
    say(f"{at}: {found['frames']} frames, longest {found['longest']:.1f} ms")
    say(
        f"  over {LONG_FRAME_MS} ms: {found['over']} (goal 0); long tasks in ms: {json.dumps(found['tasks'])}"
    )


if __name__ == "__main__":
    main()
