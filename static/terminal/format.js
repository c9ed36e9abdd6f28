// How numbers and times are written, alike in every pane.
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
const MINUS = "\u2212";

const PRICES = new Map();

/** 67,412.30 */
export function price(value, digits) {
  if (!PRICES.has(digits)) PRICES.set(digits, new Intl.NumberFormat("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
  return PRICES.get(digits).format(value);
}

export function signed(value, digits) {
  const text = price(Math.abs(value), digits);
  if (Number(text) === 0) return text;
  return (value < 0 ? MINUS : "+") + text;
}

export const clock = (ms) => `${CLOCK.format(ms)} UTC`;
export const moment = (time) => `${DAY.format(new Date(time))} UTC`;

export function ago(time, now = Date.now()) {
  const minutes = Math.floor((now - new Date(time)) / 60_000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  return minutes < 60 * 24 ? `${Math.floor(minutes / 60)} h ago` : moment(time);
}
