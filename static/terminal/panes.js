// The panes beside the watchlist: the chart, its order flow, the signals and the news.
import { module, persist } from "./api.js";
import { Chart } from "./chart/chart.js";
import { fit } from "./chart/tools/fit.js";
import { listen } from "./chart/tools/shortcuts.js";
import { News } from "./feed/news.js";
import { Signals } from "./feed/signals.js";
import { eachMinute } from "./flow/history.js";
import { OrderFlow } from "./flow/orderflow.js";

const ALL_HAVE_HEARD_MS = 2_000;
const part = (id) => document.getElementById(id);

export class Panes {
  /** `tap` shows an instrument; `isFresh` tells whether the prices of an instrument come, `trading` why those of the chart do not. */
  constructor({ api, link, config, shown, timeframes, tap, isFresh, trading }) {
    const { instruments, candlePrice } = config;
    Object.assign(this, { link, instruments, shown });
    this.chart = new Chart(part("chart"), part("chart-caption"), { api, basis: candlePrice });
    this.zones = fit(this.chart, part("price"), () => instruments[shown.symbol]);
    this.flow = new OrderFlow(part("flow-pane"), this.chart, { api, instruments, trading });
    this.news = new News(part("news-pane"), { api, instruments, choose: tap });
    this.signals = new Signals(part("signals-pane"), {
      api,
      instruments,
      isFresh,
      changed: () => this.drawSignals(),
      point: (id) => this.chart.zones.highlight(id),
      bring: async (signal) => {
        this.wanted = signal;
        const isWanted = () => this.wanted === signal;
        const reach = await persist(() => module(import.meta.resolve("./chart/zones/reach.js")), isWanted);
        if (isWanted()) reach.bring(signal, this.chart.zones, shown, tap);
      },
    });
    listen(part("price"), timeframes);
    this.show();
    eachMinute(() => this.flow.history.renew());
    this.loadFeed();
  }

  show() {
    this.wanted = null;
    const { symbol, timeframe } = this.shown;
    this.zones.show();
    this.chart.show(symbol, this.instruments[symbol].digits, timeframe).then(() => this.drawSignals());
    this.signals.look(symbol);
    if (this.flow.symbol === symbol) return this.flow.draw();
    this.link.watchFlow(symbol);
    this.flow.show(symbol);
  }

  drawSignals() {
    this.chart.draw(this.signals.of(this.shown.symbol));
  }

  hear({ ticks, flows, signals }) {
    if (ticks.length) {
      this.chart.hear(ticks);
      this.signals.price(ticks);
    }
    this.flow.hear(flows);
    this.signals.hear(signals);
  }

  streamIs(stream, state) {
    if (stream === "signals") this.signals.streamIs(state);
    if (stream === "flow") this.flow.streamIs(state);
  }

  /** The stream could not resume: loads the sums of the service. */
  miss(stream) {
    if (stream === "market") this.chart.reload();
    if (stream === "flow") this.flow.miss();
  }

  begin(stream, symbols) {
    if (stream === "market" && symbols.includes(this.shown.symbol)) this.chart.begin();
    if (stream === "flow") this.flow.begin(symbols);
  }

  look(isStale) {
    this.signals.showGains();
    this.chart.age(isStale);
  }

  loadFeed() {
    this.news.load();
    this.signals.load();
  }

  restored() {
    this.chart.reload();
    this.flow.miss();
    this.loadFeed();
  }

  /** The demo makes its past while the page is open already. */
  made(symbols) {
    if (symbols.includes(this.shown.symbol)) setTimeout(() => (this.chart.reload(), this.flow.miss()), ALL_HAVE_HEARD_MS);
  }
}
