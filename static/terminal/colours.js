// The chart draws on a canvas, which style sheets do not reach: it asks them for the colours.
const NAMES = ["text", "soft", "line", "surface", "accent", "up", "down", "up-soft", "down-soft", "warn"];
const dark = matchMedia("(prefers-color-scheme: dark)");

export function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name.replace("-s", "S"), style.getPropertyValue(`--${name}`).trim()]));
}

export const onThemeChange = (react) => dark.addEventListener("change", react);
export const isStill = matchMedia("(prefers-reduced-motion: reduce)");

export const frame = (tint) => ({
  autoSize: true,
  layout: { background: { color: tint.surface }, textColor: tint.soft, attributionLogo: false, fontSize: 12 },
  grid: { vertLines: { color: tint.line }, horzLines: { color: tint.line } },
  timeScale: { timeVisible: true, secondsVisible: false, borderColor: tint.line },
  rightPriceScale: { borderColor: tint.line },
  localization: { locale: "en-GB" },
});
