// The chart draws on a canvas, which style sheets do not reach: it asks them for the colours.
const NAMES = ["text", "soft", "line", "surface", "accent", "up", "down", "up-soft", "down-soft", "warn", "plot-1", "plot-2", "plot-3", "plot-4", "plot-5"];

export function colours() {
  // A token may be `light-dark(…)`: only as the colour of something does it become one that a canvas understands.
  const probe = document.body.appendChild(document.createElement("i"));
  const found = {};
  for (const name of NAMES) {
    probe.style.color = `var(--${name})`;
    found[name.replace("-s", "S")] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}

export const onThemeChange = (react) => document.addEventListener("tickwire:theme", react);
export const isStill = matchMedia("(prefers-reduced-motion: reduce)");

export const frame = (tint) => ({
  autoSize: true,
  layout: { background: { color: tint.surface }, textColor: tint.soft, attributionLogo: false, fontSize: 12, fontFamily: getComputedStyle(document.body).fontFamily },
  grid: { vertLines: { color: tint.line }, horzLines: { color: tint.line } },
  timeScale: { timeVisible: true, secondsVisible: false, borderColor: tint.line },
  rightPriceScale: { borderColor: tint.line, entireTextOnly: true },
  localization: { locale: "en-GB" },
});
