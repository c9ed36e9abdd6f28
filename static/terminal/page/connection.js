// How the streams are doing, in a word for all and a line for each.
const NAMES = { market: "Prices", flow: "Order flow", signals: "Signals" };
const WORDS = { live: "live", stale: "stale", connecting: "connecting", reconnecting: "reconnecting", refused: "refused" };

export class Connection {
  constructor(element) {
    this.summary = element.querySelector("[data-part=summary]");
    this.lines = element.querySelector("[data-part=lines]");
    this.announce = element.querySelector("[role=status]");
    this.element = element;
    this.states = {};
  }

  show(stream, state) {
    const before = this.states.market && statusOf(this.states.market);
    this.states[stream] = state;
    const market = this.states.market ?? state;
    const status = statusOf(market);
    const latency = market.rtt === null ? "" : ` · ${market.rtt < 10 ? market.rtt.toFixed(1) : Math.round(market.rtt)} ms`;
    this.element.dataset.status = status;
    const waiting = status === "stale" ? "Stale: no prices come" : `${WORDS[status]}…`;
    this.summary.textContent = status === "live" ? `Live${latency}` : waiting;
    this.lines.replaceChildren(...Object.entries(this.states).map(([name, each]) => line(name, each)));
    // A screen reader hears of changes, not of every measurement.
    if (stream === "market" && before !== status) this.announce.textContent = `Prices are ${WORDS[status]}.`;
  }
}

function statusOf({ status, isStale }) {
  return status === "live" && isStale ? "stale" : status;
}

function line(name, state) {
  const { rtt, reconnects, recovered, message } = state;
  const status = statusOf(state);
  const item = document.createElement("li");
  const parts = [WORDS[status]];
  if (rtt !== null && status === "live") parts.push(`${rtt.toFixed(1)} ms there and back`);
  if (reconnects) parts.push(`${reconnects} reconnect${reconnects > 1 ? "s" : ""}, ${recovered ? "nothing missed" : "something was missed"}`);
  if (message) parts.push(message);
  item.textContent = `${NAMES[name]}: ${parts.join("; ")}`;
  return item;
}
