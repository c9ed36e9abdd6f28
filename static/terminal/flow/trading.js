// Whether a market is open, from the sessions of the days to come; and, in words, why no prices come.
import { clock, span } from "../format.js";
import { opening } from "../page/hours.js";

export const isOpen = (sessions, nowMs) => !sessions || sessions.some(([opens, closes]) => opens <= nowMs && nowMs < closes);

/** Empty while prices come. `sessions` is null where a market never closes. */
export function tradingWords({ sessions, quotedMs, patienceMs }, nowMs) {
  if (!isOpen(sessions, nowMs)) {
    const next = sessions.find(([opens]) => opens > nowMs)?.[0];
    if (next === undefined) return "Closed.";
    return `Closed. O${opening(next, nowMs, "UTC").slice(1)}.`;
  }
  if (!quotedMs) return "No prices yet.";
  const opened = sessions?.find(([opens, closes]) => opens <= nowMs && nowMs < closes)[0] ?? 0;
  // Just after the opening nobody has failed to send anything yet.
  if (nowMs - Math.max(quotedMs, opened) < patienceMs) return "";
  return `No prices for ${span(nowMs - quotedMs)}. Last price ${clock(quotedMs)}.`;
}
