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

export const UTC = { offset: () => 0, label: () => "UTC" };
/** As the clocks of a chart's zone show it. */
export const shifted = (ms, zone = UTC) => ms + 1000 * zone.offset(ms / 1000);
export const clock = (ms, zone = UTC) => `${CLOCK.format(shifted(ms, zone))} ${zone.label(ms / 1000)}`;
export const moment = (time) => `${DAY.format(new Date(time))} UTC`;

export function ago(time, now = Date.now()) {
  const minutes = Math.floor((now - new Date(time)) / 60_000);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  return minutes < 60 * 24 ? `${Math.floor(minutes / 60)} h ago` : moment(time);
}

/** Only what is new: an element that is written again is laid out and announced again. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** How long something has lasted: 40 s, 3 min 20 s, 2 h 5 min, 1 d 3 h. */
export function span(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [minutes, hours, days] = [60, 3_600, 86_400].map((size) => Math.floor(seconds / size));
  if (days) return `${days} d ${hours % 24} h`;
  if (hours) return `${hours} h ${minutes % 60} min`;
  return minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

/** The price that candles are made of: the bid, or the middle with as many digits as a price has. */
export const priceOf = ({ bid, ask }, basis, digits) => (basis === "mid" ? Number(((bid + ask) / 2).toFixed(digits)) : bid);
