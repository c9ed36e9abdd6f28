"""Draws static/site/card.png, which previews of links show: python -m tools.social_card"""

from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.browsers import LAUNCH_ARGS, require_chromium

STATIC = Path(__file__).resolve().parents[1] / "static"
WIDTH, HEIGHT = 1200, 630
LINE = "M0 96 L60 84 L110 104 L170 60 L220 72 L280 40 L330 58 L390 22 L450 44 L520 8"
CARD = f"""<!doctype html>
<style>
  @font-face {{ font-family: Inter; font-weight: 100 900; src: url("{{font}}"); }}
  body {{ box-sizing: border-box; width: {WIDTH}px; height: {HEIGHT}px; margin: 0; padding: 80px;
    overflow: hidden; background: #0d1217; color: #e6ebf0; font-family: Inter; position: relative; }}
  p {{ display: flex; align-items: center; gap: 20px; margin: 0; font-size: 40px; font-weight: 700; }}
  h1 {{ margin: 72px 0 24px; font-size: 84px; line-height: 1.05; letter-spacing: -.03em;
    max-width: 900px; text-wrap: balance; }}
  h2 {{ margin: 0; color: #a0aebc; font-size: 34px; font-weight: 450; }}
  .line {{ position: absolute; right: 0; bottom: 40px; width: 560px; fill: none;
    stroke: #55c7d0; stroke-width: 4; opacity: .8; }}
</style>
<p>{{logo}}Tickwire</p>
<h1>Market data you can check</h1>
<h2>Quotes, candles, order flow, signals and news</h2>
<svg class="line" viewBox="0 0 520 110"><path d="{LINE}"/></svg>
"""


def draw() -> None:
    font = (STATIC / "vendor/inter-5.3.0/inter-latin-wght-normal.woff2").as_uri()
    logo = (STATIC / "tickwire.svg").read_text().replace("<svg", '<svg width="64" height="64"', 1)
    page_file = STATIC.parent / "var/card.html"
    page_file.parent.mkdir(exist_ok=True)
    page_file.write_text(CARD.replace("{font}", font).replace("{logo}", logo))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=require_chromium(), args=[*LAUNCH_ARGS])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(page_file.as_uri())
        page.evaluate("document.fonts.ready")
        page.screenshot(path=STATIC / "site/card.png")
        browser.close()


if __name__ == "__main__":
    draw()
