// Whether a market is open, from the sessions of the days to come; and, in words, why no prices come.
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const WEEKDAY = { weekday: "short", hour: "2-digit", minute: "2-digit", timeZone: "UTC" };
const SOON = new Intl.DateTimeFormat("en-GB", WEEKDAY);
const LATER = new Intl.DateTimeFormat("en-GB", { ...WEEKDAY, day: "numeric", month: "short" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC" });
const plain = (text) => text.replace(",", "");

/** Two units at most: 40 s, 3 min, 2 h 5 min, 1 d 3 h. */
export function span(ms) {
  if (ms < MINUTE_MS) return `${Math.max(1, Math.floor(ms / 1000))} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  const [large, size, small, unit] = ms < DAY_MS ? ["h", HOUR_MS, MINUTE_MS, "min"] : ["d", DAY_MS, HOUR_MS, "h"];
  const rest = Math.floor((ms % size) / small);
  return `${Math.floor(ms / size)} ${large}${rest ? ` ${rest} ${unit}` : ""}`;
}

export const isOpen = (sessions, nowMs) => !sessions || sessions.some(([opens, closes]) => opens <= nowMs && nowMs < closes);

/** Empty while prices come. `sessions` is null where a market never closes. */
export function tradingWords({ sessions, quotedMs, patienceMs }, nowMs) {
  if (!isOpen(sessions, nowMs)) {
    const next = sessions.find(([opens]) => opens > nowMs)?.[0];
    if (next === undefined) return "Closed.";
    const at = plain((next - nowMs < 6 * DAY_MS ? SOON : LATER).format(next));
    return `Closed. Opens ${at} UTC, in ${span(next - nowMs)}.`;
  }
  if (!quotedMs) return "No prices yet.";
  const opened = sessions?.find(([opens, closes]) => opens <= nowMs && nowMs < closes)[0] ?? 0;
  // Just after the opening nobody has failed to send anything yet.
  if (nowMs - Math.max(quotedMs, opened) < patienceMs) return "";
  return `No prices for ${span(nowMs - quotedMs)}. Last price ${CLOCK.format(quotedMs)} UTC.`;
}
