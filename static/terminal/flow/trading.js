// Whether a market is open, from the sessions of the days to come; and, in words, why no prices come.
import { tradingWords } from "../page/trading_state.js";

export const isOpen = (sessions, now) => !sessions || sessions.some(([opens, closes]) => opens <= now && now < closes);

/** Empty while prices come. `sessions` is null where a market never closes. */
export function wordsOf({ sessions, quotedMs, patienceMs }, now) {
  if (!isOpen(sessions, now)) return tradingWords({ state: "closed", opensMs: sessions.find(([opens]) => opens > now)?.[0] ?? null }, now);
  const opened = sessions?.find(([opens, closes]) => opens <= now && now < closes)[0] ?? 0;
  // Just after the opening nobody has failed to send anything yet.
  return tradingWords({ quotedMs, isFresh: now - Math.max(quotedMs, opened) < patienceMs }, now);
}
