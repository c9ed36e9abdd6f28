// When markets open and to which day a change belongs, worded as in the served page.
import { shifted } from "../format.js";

const MINUTE = 60_000;
const DAY = 86_400_000;
const format = (options) => new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC" });
const TIME = format({ hour: "2-digit", minute: "2-digit" });
const WEEKDAY = format({ weekday: "short" });
const DATE = format({ day: "numeric" });
const MONTH = format({ month: "long" });

const dayOfMonth = (ms) => `${DATE.format(ms)} ${MONTH.format(ms).slice(0, 3)}`;

/** `sessions` is null where a market never closes. */
export const isOpen = (sessions, now) => !sessions || sessions.some(([opens, closes]) => opens <= now && now < closes);

/** opens Sun 22:00, in 1 d 3 h: a line may end after the comma and nowhere else. `zone` is that of a chart, which is named. */
export function opening(opensMs, now, zone) {
  if (opensMs === null) return "";
  return phrases(shifted(opensMs, zone), opensMs - now, zone ? ` ${zone.label(opensMs / 1000)}` : "").map((phrase) => phrase.replaceAll(" ", "\u00a0")).join(", ");
}

function phrases(opensMs, ahead, zone) {
  if (ahead < DAY) return [`opens ${TIME.format(opensMs)}${zone}`, `in ${span(ahead)}`];
  if (ahead < 7 * DAY) return [`opens ${WEEKDAY.format(opensMs)} ${TIME.format(opensMs)}${zone}`, `in ${span(ahead)}`];
  return [`opens ${dayOfMonth(opensMs)}`, `in ${Math.floor(ahead / DAY)} d`];
}

function span(ms) {
  const minutes = Math.max(1, Math.ceil(ms / MINUTE));
  const [hours, days] = [Math.floor(minutes / 60), Math.floor(minutes / 1440)];
  const and = (count, unit) => (count ? ` ${count} ${unit}` : "");
  if (days) return `${days} d${and(hours % 24, "h")}`;
  return hours ? `${hours} h${and(minutes % 60, "min")}` : `${minutes} min`;
}

export function tradingDayOf(dayMs, now) {
  const days = Math.floor(now / DAY) - Math.floor(dayMs / DAY);
  if (days <= 0) return "today";
  return days < 7 ? WEEKDAY.format(dayMs) : dayOfMonth(dayMs);
}
