// The terminal page: prices that move come first, and then the panes beside them.
import { Api, hurry } from "./api.js";
import { isStill } from "./colours.js";
import { PaletteOnDemand, Shortcuts } from "./keyboard/shortcuts.js";
import { Address } from "./page/address.js";
import { Connection } from "./page/connection.js";
import { Incidents } from "./page/incidents.js";
import { keep } from "./page/kept.js";
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
const timeframes = [...document.querySelectorAll("input[name=timeframe]")];
const early = new Map();
let panes;

const link = new Link({ csrf: config.csrf, symbols }, { frames, streamReport, restored });
const connection = new Connection(part("connection"));
const outage = new Outage(part("outage"), part("outage-announcement"), document.querySelector(".panes"));
const incidents = new Incidents(part("incidents"), part("incident"));
const api = new Api(link, (path, failure) => connection.answered(path, failure));
const watchlist = new Watchlist(part("watch"), {
  api,
  address: config.watchlist,
  instruments,
  basis: config.candlePrice,
  choose: tap,
  pass: (symbol) => address.go({ symbol }, true) && show(),
  learn: ({ incidents: open }) => incidents.show(open),
});
connection.areStale = () => watchlist.isStale;
const trading = new TradingState(part("trading"), { row: () => watchlist.rows.get(shown.symbol), isFresh: () => isFresh(shown.symbol), zone: () => panes?.zones.zoned.zone });
const palette = new PaletteOnDemand(part("palette"), { rows: () => watchlist.inOrder(), choose: tap });
const shortcuts = new Shortcuts(part("shortcuts"), { palette, watchlist });

function frames(all) {
  const of = (kind) => all.filter(([each]) => each === kind).map(([, frame]) => frame);
  const ticks = of("tick");
  if (ticks.length) {
    outage.hear(ticks);
    watchlist.hear(ticks);
  }
  if (panes) panes.hear({ ticks, flows: of("flow"), signals: of("signal") });
  else for (const tick of ticks) early.set(tick.symbol, tick);
}

function streamReport({ stream, state, missed, began = [] }) {
  if (state) {
    const before = connection.states[stream];
    connection.show(stream, state);
    if (stream === "market" && isAnswering(state) && !isAnswering(before)) hurry();
    panes?.streamIs(stream, state);
  }
  if (stream === "market") look();
  if (missed) panes?.miss(stream);
  if (began.length) {
    begin(stream, began);
    // A request sent at once may be answered by a server process that does not know it yet.
    setTimeout(() => begin(stream, began), ALL_HAVE_HEARD_MS);
  }
}

const isAnswering = (state) => state?.status === "live" && !state.isSilent;

/** Stale prices show their age. */
function look() {
  outage.look(connection);
  trading.look();
  panes?.look(outage.isOut || watchlist.rows.get(shown.symbol).state === "stale");
}

/** Real prices replace simulated ones, or the other way round: what is shown belongs to another market. */
function begin(stream, symbols) {
  if (stream === "market") for (const symbol of symbols) watchlist.begin(symbol);
  panes?.begin(stream, symbols);
}

/** The browser restored the page as it was, so it is out of date. */
function restored() {
  panes?.restored();
  watchlist.load();
}

function isFresh(symbol) {
  return !outage.isOut && watchlist.rows.get(symbol)?.state === "open";
}

function choose(change) {
  // Drop what the address named but does not exist.
  for (const notice of document.querySelectorAll("[data-unknown]")) notice.remove();
  if (address.go(change)) show();
}

function show() {
  const { symbol } = shown;
  part("chart-symbol").textContent = symbol;
  part("chart-name").textContent = instruments[symbol].name;
  for (const each of timeframes) each.checked = each.value === shown.timeframe;
  watchlist.select(symbol);
  look();
  panes?.show();
}

/** On a phone the list is longer than the window, so scroll to the tapped row. */
function tap(symbol, timeframe = shown.timeframe) {
  choose({ symbol, timeframe });
  if (isNarrow.matches) part("price").scrollIntoView({ block: "start", behavior: isStill.matches ? "auto" : "smooth" });
}

for (const each of timeframes) {
  each.addEventListener("change", () => {
    // Only a chosen timeframe is remembered, not one in which a signal was shown.
    keep("timeframe", each.value);
    choose({ timeframe: each.value });
  });
}
part("find").addEventListener("click", () => palette.open());
part("keys").addEventListener("click", () => shortcuts.show());
setInterval(() => {
  connection.look();
  look();
}, 1000);
setInterval(() => watchlist.tell(Date.now()), 15_000);
show();

async function addPanes() {
  const { Panes } = await import("./panes.js");
  panes = new Panes({ api, link, config, shown, timeframes, tap, isFresh, trading });
  // The next price of some instruments may take long. Signals and order flow are requested.
  panes.hear({ ticks: [...early.values()], flows: [], signals: [] });
  for (const [stream, state] of Object.entries(connection.states)) panes.streamIs(stream, state);
  look();
  return panes;
}

export const complete = addPanes();
if (part("coming")) {
  import("./coming.js").then(({ Coming }) => new Coming(part("coming"), (symbols) => panes?.made(symbols), () => panes?.loadFeed()));
}
