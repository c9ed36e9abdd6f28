"""`make bench-terminal`: how soon the terminal is live, and how smooth and small it stays at 200 ticks a
second, with three indicators and twenty sparklines. Each figure has a floor, and missing one is a failure."""

from __future__ import annotations

import gzip
import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin

import httpx
from playwright.sync_api import Browser, Page, Response, sync_playwright

from pages.static_files import without_comments
from tests.browser.browsers import LAUNCH_ARGS, require_chromium
from tests.nightly.benchmarks.tables import Verdict, conclude, say
from tests.patience import wait_until
from tests.programs.running import Serve

TICKS_A_SECOND = "200"
LOADS = 5
SETTLED_S, TRACED_S = 30, 20
AT_REST_MS = 1_500
CHART = "lightweight-charts"
INDICATORS, SPARKLINES = 3, 20
KEPT = {name: {"on": True} for name in ("bollinger", "rsi", "macd")}
# What was painted and what moved, as the browser itself saw it; and what somebody chose on an earlier visit.
OBSERVE = f"""
localStorage.setItem("tickwire-indicators", {json.dumps(json.dumps(KEPT))});
window.seen = {{ shift: 0, painted: 0, live: 0, long: [] }};
const observe = (type, take) =>
  new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({{ type, buffered: true }});
observe("layout-shift", ({{ value, hadRecentInput }}) => {{ seen.shift += hadRecentInput ? 0 : value; }});
observe("largest-contentful-paint", ({{ startTime }}) => {{ seen.painted = startTime; }});
observe("longtask", ({{ duration }}) => {{ seen.long.push(Math.round(duration)); }});
new MutationObserver((changes) => {{
  seen.live ||= changes.some(({{ target }}) => target.dataset.status === "live") && performance.now();
}}).observe(document, {{ subtree: true, attributeFilter: ["data-status"] }});
"""
# Only sums: a list of all frames would grow the heap that is measured.
COUNT_FRAMES = """() => {
  const frames = (window.frames_seen = { count: 0, over: 0, longest: 0 });
  seen.long = [];
  let last = performance.now();
  requestAnimationFrame(function step(now) {
    frames.count += 1;
    frames.over += now - last > 50;
    frames.longest = Math.max(frames.longest, now - last);
    last = now;
    requestAnimationFrame(step);
  });
}"""
SHOWN = """() => ({
  indicators: Number(document.querySelector("[data-tool=indicators] [data-part=count]").textContent),
  sparklines: [...document.querySelectorAll(".spark path")].filter((path) => path.getAttribute("d")).length,
})"""
WORKER = "JSON.parse(document.getElementById('terminal-config').textContent).worker"
IMPORTED = re.compile(r"""(?:import|from)\s*["'](\.[^"']+)["']""")


def figure(name: str, found: float, floor: float, unit: str) -> Verdict:
    return Verdict(name, f"≤ {floor:g} {unit}", f"{found:.3f} {unit}", found <= floor)


class Load(NamedTuple):
    live_s: float
    painted_s: float
    shift: float


def main() -> None:
    minutes = float(os.environ.get("MINUTES") or 10)
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
            figures = measure(browser, f"{server.url}/terminal", minutes)
            browser.close()
    sys.exit(conclude(*figures))


def measure(browser: Browser, url: str, minutes: float) -> list[Verdict]:
    # The browser has just started, and the service made the demo's past: both are still busy with themselves.
    load(browser, url)
    loads = [load(browser, url) for _ in range(LOADS)]
    scripts: dict[str, bytes] = {}
    page = opened(browser, url, lambda answer: keep_script(answer, scripts))
    page.wait_for_timeout(1000 * SETTLED_S)
    shown = page.evaluate(SHOWN)
    assert shown["indicators"] == INDICATORS, shown
    assert shown["sparklines"] >= SPARKLINES, shown
    task_ms = longest_task_ms(browser, page)
    heap_mb, frames = watched(page, minutes)
    keep_imports(urljoin(url, page.evaluate(WORKER)), scripts)
    tasks = sorted(frames["tasks"], reverse=True)
    say(
        f"{LOADS} loads at 1440 × 900 in a tab at rest, after a first one, of which the median counts; then"
        f" {minutes:g} minutes at {TICKS_A_SECOND} ticks/s, with {shown['indicators']} indicators and"
        f" {shown['sparklines']} sparklines:\n"
        f"live after {', '.join(f'{each.live_s:.2f}' for each in loads)} s;"
        f" {frames['count']} frames, the longest {frames['longest']:.0f} ms; {len(tasks)} tasks over 50 ms,"
        f" the longest in ms: {tasks[:10]}.\n"
        f"The chart library has {size_kb(scripts, is_chart=True):.1f} KB gzipped.\n"
    )
    return [
        figure("Live prices", statistics.median(each.live_s for each in loads), 1, "s"),
        figure("Largest contentful paint", statistics.median(each.painted_s for each in loads), 1, "s"),
        figure("Layout shift", max(each.shift for each in loads), 0.02, ""),
        figure("Frames over 50 ms", frames["over"], 0, ""),
        figure("Longest task on its core", task_ms, 50, "ms"),
        figure("Scripts without the chart", size_kb(scripts, is_chart=False), 60, "KB"),
        figure("Heap, more at the end", heap_mb, 5, "MB"),
    ]


def load(browser: Browser, url: str) -> Load:
    page = opened(browser, url)
    # Asked meanwhile, the page would answer the question instead of becoming live.
    page.wait_for_timeout(3_000)
    wait_until(lambda: page.evaluate("seen.live"))
    seen = page.evaluate("seen")
    page.context.close()
    return Load(seen["live"] / 1000, seen["painted"] / 1000, seen["shift"])


def opened(browser: Browser, url: str, hear: Callable[[Response], None] | None = None) -> Page:
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    page.add_init_script(OBSERVE)
    if hear is not None:
        page.on("response", hear)
    # A person's tab is there before an address is typed: its process is not what takes long to become live.
    page.wait_for_timeout(AT_REST_MS)
    page.goto(url, wait_until="commit")
    return page


def watched(page: Page, minutes: float) -> tuple[float, dict[str, Any]]:
    """How many MB the heap grew by, and how the frames were."""
    before = heap_of(page)
    page.evaluate(COUNT_FRAMES)
    page.wait_for_timeout(60_000 * minutes)
    frames: dict[str, Any] = page.evaluate("({ ...window.frames_seen, tasks: seen.long })")
    return (heap_of(page) - before) / 2**20, frames


def longest_task_ms(browser: Browser, page: Page) -> float:
    """The processor time of the page's longest task. Unlike a frame it is as long on a busy machine."""
    browser.start_tracing(page=page, categories=["toplevel"])
    page.wait_for_timeout(1000 * TRACED_S)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    threads = [(each.get("pid"), each.get("tid")) for each in events]
    named = zip(threads, events, strict=True)
    mains = {thread for thread, each in named if each.get("args", {}).get("name") == "CrRendererMain"}
    took_us = [each.get("tdur", 0) for thread, each in zip(threads, events, strict=True) if thread in mains]
    return float(max(took_us) / 1000)


def heap_of(page: Page) -> int:
    """Bytes of what is still in use."""
    devtools = page.context.new_cdp_session(page)
    for _ in range(2):
        devtools.send("HeapProfiler.collectGarbage")
    used = int(devtools.send("Runtime.getHeapUsage")["usedSize"])
    devtools.detach()
    return used


def keep_script(answer: Response, scripts: dict[str, bytes]) -> None:
    if answer.request.resource_type == "script" and answer.ok:
        scripts[answer.url] = answer.body()


def keep_imports(url: str, scripts: dict[str, bytes]) -> None:
    """Of a shared worker, whose requests the page does not see."""
    if url not in scripts:
        scripts[url] = httpx.get(url).raise_for_status().content
        for path in IMPORTED.findall(scripts[url].decode()):
            keep_imports(urljoin(url, path), scripts)


def size_kb(scripts: dict[str, bytes], *, is_chart: bool) -> float:
    """As production sends them."""
    sent = (without_comments(body) for url, body in scripts.items() if (CHART in url) is is_chart)
    return sum(len(gzip.compress(body)) for body in sent) / 1024


if __name__ == "__main__":
    main()
