// How the streams are doing, in a word for all and a line for each.
const NAMES = { market: "Prices", flow: "Order flow", signals: "Signals" };
const WORDS = { live: "live", connecting: "connecting", reconnecting: "reconnecting", refused: "refused" };

export class Connection {
  constructor(element) {
    this.summary = element.querySelector("[data-part=summary]");
    this.lines = element.querySelector("[data-part=lines]");
    this.announce = element.querySelector("[role=status]");
    this.element = element;
    this.states = {};
  }

  told(stream, state) {
    const before = this.states.market?.status;
    this.states[stream] = state;
    const market = this.states.market ?? state;
    const latency = market.rtt === null ? "" : ` · ${market.rtt < 10 ? market.rtt.toFixed(1) : Math.round(market.rtt)} ms`;
    this.element.dataset.status = market.status;
    this.summary.textContent = market.status === "live" ? `Live${latency}` : `${WORDS[market.status]}…`;
    this.lines.replaceChildren(...Object.entries(this.states).map(([name, each]) => line(name, each)));
    // A screen reader hears of changes, not of every measurement.
    if (stream === "market" && before !== market.status) this.announce.textContent = `Prices are ${WORDS[market.status]}.`;
  }
}

function line(name, { status, rtt, reconnects, recovered, message }) {
  const item = document.createElement("li");
  const parts = [WORDS[status]];
  if (rtt !== null && status === "live") parts.push(`${rtt.toFixed(1)} ms there and back`);
  if (reconnects) parts.push(`${reconnects} reconnect${reconnects > 1 ? "s" : ""}, ${recovered ? "nothing missed" : "something was missed"}`);
  if (message) parts.push(message);
  item.textContent = `${NAMES[name]}: ${parts.join("; ")}`;
  return item;
}
