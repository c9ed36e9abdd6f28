// The front page's board: some rows of the watchlist, live over one stream.
import { colours, onThemeChange } from "../terminal/colours.js";
import { Stream } from "../terminal/streams/stream.js";
import { Token } from "../terminal/streams/token.js";
import { Row } from "../terminal/watchlist/row.js";

const STATES = { live: "Live", connecting: "Connecting…", reconnecting: "Reconnecting…" };
const config = JSON.parse(document.getElementById("front-config").textContent);
const state = document.getElementById("board-state");

/** Its lines are short: when a market opens, and not how long that is from now. */
class BoardRow extends Row {
  words(now) {
    return super.words(now).split(", ")[0];
  }
}

let tint = colours();
onThemeChange(() => (tint = colours()));

const rows = new Map(
  [...document.querySelectorAll("#board tr[data-symbol]")].map((element) => {
    const { symbol } = element.dataset;
    return [symbol, new BoardRow(element, config.instruments[symbol], () => tint, config.candlePrice)];
  }),
);
const heard = new Map();

function hear(tick) {
  if (!heard.size) requestAnimationFrame(show);
  heard.set(tick.symbol, tick);
}

function show(now) {
  for (const [symbol, tick] of heard) {
    rows.get(symbol)?.hear(tick, now);
    rows.get(symbol)?.draw();
  }
  heard.clear();
}

const stream = new Stream("/ws/market", new Token(config.csrf), {
  hear,
  tell({ state: now }) {
    if (!now) return;
    state.textContent = STATES[now.status] ?? now.message;
    state.dataset.status = now.status;
  },
});
stream.want([...rows.keys()]);
