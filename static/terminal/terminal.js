// The terminal page: what comes over the line goes to the panes.
import { Api } from "./api.js";
import { Chart } from "./chart/chart.js";
import { fit } from "./chart/tools/fit.js";
import { listen } from "./chart/tools/shortcuts.js";
import { isStill } from "./colours.js";
import { News } from "./feed/news.js";
import { Signals } from "./feed/signals.js";
import { eachMinute } from "./flow/history.js";
import { OrderFlow } from "./flow/orderflow.js";
import { PaletteOnDemand, Shortcuts } from "./keyboard/shortcuts.js";
import { Address } from "./page/address.js";
import { Connection } from "./page/connection.js";
import { Incidents } from "./page/incidents.js";
import { Outage } from "./page/outage.js";
import { TradingState } from "./page/trading_state.js";
import { Link } from "./streams/link.js";
import { Watchlist } from "./watchlist/watchlist.js";

const config = JSON.parse(document.getElementById("terminal-config").textContent);
const { instruments } = config;
const ALL_HAVE_HEARD_MS = 2_000;
const isNarrow = matchMedia("(max-width: 47.99rem)");
const part = (id) => document.getElementById(id);
const symbols = Object.keys(instruments);
const address = new Address({ symbols, timeframes: config.timeframes, symbol: config.symbol, timeframe: "1m" }, show);
const { shown } = address;

const link = new Link({ csrf: config.csrf, symbols, flow: shown.symbol }, { frames, streamReport, restored });
const connection = new Connection(part("connection"));
const outage = new Outage(part("outage"), part("outage-said"), document.querySelector(".panes"));
const incidents = new Incidents(part("incidents"), part("incident"));
const api = new Api(link, (path, failure) => connection.answered(path, failure));
export const chart = new Chart(part("chart"), part("chart-caption"), { api, basis: config.candlePrice });
const zones = fit(chart, part("price"), () => instruments[shown.symbol]);
export const flow = new OrderFlow(part("flow-pane"), chart, { api, instruments });
const timeframes = [...document.querySelectorAll("input[name=timeframe]")];
const watchlist = new Watchlist(part("watch"), {
  api,
  address: config.watchlist,
  instruments,
  choose: tap,
  pass: (symbol) => address.go({ symbol }, true) && show(),
  learn: ({ incidents: open }) => incidents.show(open),
});
connection.areStale = () => watchlist.isStale;
const trading = new TradingState(part("trading"), { row: () => watchlist.rows.get(shown.symbol), isFresh: () => isFresh(shown.symbol) });
const palette = new PaletteOnDemand(part("palette"), { rows: () => watchlist.inOrder(), choose: tap });
const shortcuts = new Shortcuts(part("shortcuts"), { palette, watchlist });
const news = new News(part("news-pane"), { api, instruments, choose: tap });
const signals = new Signals(part("signals-pane"), {
  api,
  instruments,
  isFresh,
  changed: () => chart.draw(signals.of(shown.symbol)),
  point: (id) => chart.zones.highlight(id),
  bring({ id, symbol }) {
    tap(symbol);
    chart.zones.bring(id);
  },
});

function frames(all) {
  const of = (kind) => all.filter(([each]) => each === kind).map(([, frame]) => frame);
  const ticks = of("tick");
  if (ticks.length) {
    outage.hear(ticks);
    watchlist.hear(ticks);
    chart.hear(ticks);
    signals.price(ticks);
    flow.price(ticks);
  }
  flow.hear(of("flow"));
  signals.hear(of("signal"));
}

function streamReport({ stream, state, missed, began = [] }) {
  if (state) connection.show(stream, state);
  if (stream === "market") look();
  if (stream === "signals" && state) signals.streamIs(state);
  if (stream === "flow" && state) flow.streamIs(state);
  // What the stream could not tell again, the service has summed up.
  if (missed && stream === "market") chart.reload();
  if (missed && stream === "flow") flow.miss();
  if (stream === "market" && began.length) {
    begin(began);
    // Asked at once, another server process may answer that has not heard of it yet.
    setTimeout(() => begin(began), ALL_HAVE_HEARD_MS);
  }
  if (stream === "flow" && began.length) {
    flow.begin(began);
    setTimeout(() => flow.begin(began), ALL_HAVE_HEARD_MS);
  }
}

/** What is no longer of now says of when it is. */
function look() {
  outage.look(connection);
  trading.look();
  signals.showGains();
  chart.age(outage.isOut || watchlist.rows.get(shown.symbol).state === "stale");
}

/** Real prices instead of simulated ones, or the other way round: what is shown of before is of another market. */
function begin(symbols) {
  for (const symbol of symbols) watchlist.begin(symbol);
  if (symbols.includes(shown.symbol)) chart.begin();
}

/** The browser brings the page back as it was, which is not as things are. */
function restored() {
  chart.reload();
  flow.miss();
  signals.load();
  news.load();
  watchlist.load();
}

/** The demo makes its past while the page is open already. */
function made(symbols) {
  if (symbols.includes(shown.symbol)) setTimeout(() => (chart.reload(), flow.miss()), ALL_HAVE_HEARD_MS);
}

function isFresh(symbol) {
  return !outage.isOut && watchlist.rows.get(symbol)?.state === "open";
}

function choose(symbol) {
  if (address.go({ symbol })) show();
}

function show() {
  const { symbol, timeframe } = shown;
  const { name, digits } = instruments[symbol];
  part("chart-symbol").textContent = symbol;
  part("chart-name").textContent = name;
  watchlist.select(symbol);
  look();
  for (const choice of timeframes) choice.checked = choice.value === timeframe;
  zones.show();
  chart.show(symbol, digits, timeframe).then(() => chart.draw(signals.of(shown.symbol)));
  signals.look(symbol);
  if (flow.symbol === symbol) return flow.draw();
  if (flow.symbol) link.watchFlow(symbol);
  flow.show(symbol);
}

for (const choice of timeframes) {
  choice.addEventListener("change", () => {
    if (address.go({ timeframe: choice.value })) show();
  });
}

/** On a phone the list is longer than the window: what was tapped is to be seen. */
function tap(symbol) {
  choose(symbol);
  if (isNarrow.matches) part("price").scrollIntoView({ block: "start", behavior: isStill.matches ? "auto" : "smooth" });
}

part("find").addEventListener("click", () => palette.open());
part("keys").addEventListener("click", () => shortcuts.show());
listen(part("price"), timeframes);
setInterval(() => {
  connection.look();
  look();
}, 1000);
setInterval(() => watchlist.tell(Date.now()), 15_000);
show();
eachMinute(() => flow.history.renew());
news.load();
signals.load();
if (part("coming")) {
  import("./coming.js").then(({ Coming }) => {
    new Coming(part("coming"), made, () => {
      signals.load();
      news.load();
    });
  });
}
