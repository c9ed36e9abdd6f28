// Whether each pane is live: in one line for all of them, and a line for each.
import { closing } from "../chart/tools/menu.js";
import { write } from "../format.js";

const NAMES = { market: "Prices", candles: "Candles", flow: "Order flow", signals: "Signals", news: "News" };
const WORDS = { live: "live", stale: "stale", connecting: "connecting", reconnecting: "reconnecting", refused: "refused", silent: "no answer", failing: "not updated" };
const REASONS = {
  stream_limit_exceeded: "limit reached",
  rate_limit_exceeded: "limit reached",
  overloaded: "service overloaded",
  invalid_api_key: "session ended",
  slow_consumer: "connection too slow",
  taken_over: "taken over elsewhere",
  stream_closed: "closed in your settings",
};
// Failures of one instrument appear in its pane and do not concern the connection.
const OF_INSTRUMENT = ["quote_unavailable", "symbol_not_found"];
const ABSENCES = ["silent", "reconnecting"];
const PANE_OF = { market: "candles", news: "news", signals: "signals", orderflow: "flow" };
// A stream that takes longer than this to open is reported.
const PATIENCE_MS = 5_000;

export class Connection {
  constructor(element) {
    this.summary = element.querySelector("[data-part=summary]");
    this.lines = element.querySelector("[data-part=lines]");
    this.announce = element.querySelector("[role=status]");
    this.element = element;
    this.states = {};
    this.failures = {};
    this.beganAt = performance.now();
    // Whether no open market has fresh prices, although the stream works.
    this.areStale = () => false;
    closing(element.querySelector("details"));
    // In the order in which they are listed, whichever comes first.
    this.panes = Object.fromEntries(Object.keys(NAMES).map((pane) => [pane, "pending"]));
    this.items = Object.fromEntries(Object.keys(NAMES).map((pane) => [pane, document.createElement("li")]));
    this.lines.replaceChildren(...Object.values(this.items));
  }

  /** The state of a stream has changed. */
  show(stream, state) {
    this.states[stream] = state;
    this.look();
  }

  /** A request has ended; `failure` is null if it was answered. */
  answered(path, failure) {
    const pane = PANE_OF[path.split("/")[0]];
    if (!pane || OF_INSTRUMENT.includes(failure?.code)) return;
    this.failures[pane] = failure;
    this.look();
  }

  /** Of the prices, which matter most. */
  get status() {
    const status = statusOf(this.states.market);
    return status === "live" && this.areStale() ? "stale" : status;
  }

  look() {
    for (const pane of Object.keys(NAMES)) this.panes[pane] = this.stateOf(pane);
    const missing = Object.entries(this.panes).filter(([, state]) => !["live", "pending"].includes(state));
    const status = this.status === "live" && missing.length ? "partial" : this.status;
    const latency = this.states.market?.rtt;
    const text = status === "live" ? "Live" : status === "partial" ? `Live except ${listed(missing)}` : this.without();
    this.element.dataset.status = status;
    write(this.summary, status === "live" && latency ? `Live · ${rounded(latency)} ms` : text);
    for (const pane of Object.keys(NAMES)) write(this.items[pane], this.line(pane));
    // A screen reader announces changes, not every measurement.
    if (text !== this.text && this.text !== undefined) write(this.announce, text.endsWith("…") ? text : `${text}.`);
    this.text = text;
  }

  /** live, pending, or why it is not live. */
  stateOf(pane) {
    const [stream, failure] = [this.states[pane], this.failures[pane]];
    const status = stream && statusOf(stream);
    if (status && status !== "live") return this.isBeginning(stream) ? "pending" : reasonOf(stream.code, WORDS[status]);
    if (failure) return reasonOf(failure.code, WORDS.silent);
    if (status) return "live";
    // What comes by requests is as available as the service.
    return failure === null ? (ABSENCES.includes(this.status) ? WORDS[this.status] : "live") : "pending";
  }

  isBeginning({ status, message }) {
    return status === "connecting" && !message && performance.now() - this.beganAt < PATIENCE_MS;
  }

  without() {
    const { status } = this;
    if (status === "stale") return "Stale: no new prices";
    if (status !== "refused") return `${capital(WORDS[status])}…`;
    return `Refused: ${reasonOf(this.states.market.code, this.states.market.message)}`;
  }

  line(pane) {
    const { rtt = null, reconnects, recovered, message } = this.states[pane] ?? {};
    const state = this.panes[pane];
    const parts = [state === "pending" ? "connecting" : state];
    if (rtt !== null && state === "live") parts.push(`${rtt.toFixed(1)} ms round trip`);
    if (reconnects) parts.push(`${reconnects}\u00a0reconnect${reconnects > 1 ? "s" : ""}, ${recovered ? "nothing\u00a0missed" : "something\u00a0was\u00a0missed"}`);
    // A browser's message about a failure is of no use to people.
    const { code, message: why } = this.failures[pane] ?? {};
    const reason = message || (typeof code === "string" && why);
    if (reason) parts.push(reason);
    return `${NAMES[pane]}: ${parts.join("; ")}`;
  }
}

export function statusOf(state) {
  if (!state) return "connecting";
  if (state.status !== "live") return state.status;
  return state.isSilent ? "silent" : state.isStale ? "stale" : "live";
}

const reasonOf = (code, otherwise) => REASONS[code] ?? otherwise;
const rounded = (ms) => (ms < 10 ? ms.toFixed(1) : Math.round(ms));
const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** signals: limit reached; news and candles: no answer. */
function listed(missing) {
  const byReason = new Map();
  for (const [pane, reason] of missing) byReason.set(reason, [...(byReason.get(reason) ?? []), NAMES[pane].toLowerCase()]);
  return [...byReason].map(([reason, panes]) => `${joined(panes)}: ${reason}`).join("; ");
}

const joined = (names) => [names.slice(0, -1).join(", "), names.at(-1)].filter(Boolean).join(" and ");
