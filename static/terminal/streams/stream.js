// One socket that reconnects and resumes where it was: nothing is missed, nothing comes twice.
import { Refused } from "./token.js";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 15_000;
// A connection that breaks sooner than this after its reply does not count: the pauses keep growing.
const STEADY_MS = 10_000;
const PING_MS = 5_000;
// After recent prices, silence is checked sooner.
const PAUSE_MS = 2_000;
const ANSWER_MS = 2_500;
// The service says something at least every 10 seconds.
const SILENCE_MS = 15_000;
const LOOK_MS = 500;
const FEATURES = ["seq", "snapshot", "heartbeat"];
// More symbols are no subscribe message.
const MOST_SYMBOLS = 200;

export class Stream {
  /** `hear` receives data, `tell` the state of the connection. */
  constructor(path, token, { hear, tell, mayOpen = () => true, isOfAll = false, more = {} }) {
    this.path = path;
    this.mayOpen = mayOpen;
    this.isOfAll = isOfAll;
    this.token = token;
    this.hear = hear;
    this.tell = tell;
    this.more = more;
    this.symbols = [];
    this.epoch = null;
    this.positions = {};
    this.state = { status: "connecting", reconnects: 0, rtt: null, recovered: true, isStale: false, isSilent: false, message: "", code: "" };
    this.pauseMs = FIRST_PAUSE_MS;
    this.answeredAt = Infinity;
    this.dataAt = -Infinity;
    this.wasLive = false;
  }

  want(symbols) {
    const gone = this.symbols.filter((symbol) => !symbols.includes(symbol));
    const fresh = symbols.filter((symbol) => !this.symbols.includes(symbol));
    this.symbols = [...symbols];
    for (const symbol of gone) delete this.positions[symbol];
    if (!this.socket) return this.open();
    if (this.socket.readyState !== WebSocket.OPEN || !this.wasAnswered) return;
    for (let at = 0; at < fresh.length; at += MOST_SYMBOLS) this.say(this.asking(fresh.slice(at, at + MOST_SYMBOLS)));
    if (gone.length) this.say({ action: "unsubscribe", symbols: gone });
  }

  async open() {
    clearTimeout(this.opening);
    // On two of the three paths no symbols would mean all of them.
    if ((!this.symbols.length && !this.isOfAll) || !this.mayOpen()) {
      this.socket = null;
      return;
    }
    this.socket = { readyState: WebSocket.CONNECTING };
    this.note({ status: this.wasLive ? "reconnecting" : "connecting" });
    let key;
    try {
      key = await this.token.get();
    } catch (error) {
      this.error = error instanceof Refused ? error : null;
      return this.error?.status === 403 ? this.refuse(error) : this.again(this.error?.retryAfterS);
    }
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = (this.socket = new WebSocket(`${scheme}://${location.host}${this.path}`));
    this.wasAnswered = false;
    this.answeredAt = Infinity;
    this.error = null;
    socket.onopen = () => socket === this.socket && this.subscribe(key);
    socket.onmessage = ({ data }) => socket === this.socket && this.take(JSON.parse(data));
    socket.onclose = () => socket === this.socket && this.closed();
    this.watch();
  }

  subscribe(key) {
    this.asked = this.symbols.slice(0, MOST_SYMBOLS);
    this.say({ ...this.asking(this.asked), api_key: key });
  }

  asking(symbols) {
    const message = { action: "subscribe", features: FEATURES, ...this.more };
    if (symbols.length) message.symbols = symbols;
    const known = symbols.filter((symbol) => this.positions[symbol] !== undefined);
    const positions = Object.fromEntries(known.map((symbol) => [symbol, this.positions[symbol]]));
    if (known.length) message.resume = { epoch: this.epoch, positions };
    return message;
  }

  say(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  take(frame) {
    this.heardAt = performance.now();
    if (this.state.isSilent) this.note({ isSilent: false });
    if (frame.seq !== undefined) this.positions[frame.symbol] = frame.seq;
    const control = frame.type && this[`on_${frame.type}`];
    if (control) control.call(this, frame);
    else {
      this.dataAt = this.heardAt;
      this.hear(frame);
    }
  }

  on_subscribed({ epoch, positions = {}, unrecovered = [] }) {
    const isFirst = !this.wasAnswered;
    // Positions of another epoch say nothing in this one.
    if (epoch !== this.epoch) this.positions = {};
    this.epoch = epoch;
    for (const [symbol, seq] of Object.entries(positions)) {
      if (unrecovered.includes(symbol) || this.positions[symbol] === undefined) this.positions[symbol] = seq;
    }
    const missed = this.wasLive && unrecovered.length > 0;
    if (isFirst) this.live();
    if (missed) this.miss(unrecovered);
    if (!isFirst) return;
    this.ping();
    // What was wanted while the answer was under way.
    const wanted = this.symbols;
    this.symbols = this.asked;
    this.want(wanted);
  }

  live() {
    this.wasAnswered = true;
    this.answeredAt = performance.now();
    const reconnects = this.state.reconnects + (this.wasLive ? 1 : 0);
    this.note({ status: "live", reconnects, isStale: false, isSilent: false, message: "", code: "" });
    this.wasLive = true;
  }

  miss(symbols) {
    this.note({ recovered: false });
    this.tell({ missed: symbols });
  }

  on_gap({ symbols, epoch, positions }) {
    this.epoch = epoch;
    if (symbols.includes("*")) this.positions = {};
    for (const symbol of symbols) delete this.positions[symbol];
    Object.assign(this.positions, positions);
    this.miss(symbols);
  }

  on_pong() {
    this.note({ rtt: performance.now() - this.pingedAt });
  }

  on_error({ error, fatal, retry }) {
    if (!fatal) return console.warn(`${this.path}: ${error.message}`);
    this.error = { ...error, retry };
    if (error.code === "invalid_api_key") {
      this.token.forget();
      this.error.retry = true;
    }
  }

  /** The connection holds, and the service itself hears no prices: no quiet market. */
  on_notice({ code, symbols }) {
    if (code === "stale" || code === "live") this.note({ isStale: code === "stale" });
    if (code === "new_series") this.tell({ began: symbols });
  }

  on_heartbeat() {}
  on_unsubscribed() {}

  ping() {
    this.pingedAt = performance.now();
    this.say({ action: "ping" });
  }

  watch() {
    this.heardAt = this.lookedAt = performance.now();
    this.watching = setInterval(() => this.look(performance.now()), LOOK_MS);
  }

  look(now) {
    // A computer that slept could not listen.
    if (now - this.lookedAt > 4 * LOOK_MS) this.heardAt = now;
    this.lookedAt = now;
    const quietMs = now - this.heardAt;
    if (quietMs >= SILENCE_MS) return this.lost();
    if (!this.wasAnswered || this.socket.readyState !== WebSocket.OPEN) return;
    const isAwaited = this.pingedAt > this.heardAt;
    if (isAwaited && now - this.pingedAt >= ANSWER_MS && !this.state.isSilent) this.note({ isSilent: true });
    const isPause = !isAwaited && quietMs >= PAUSE_MS && now - this.dataAt < PING_MS;
    if (isPause || now - this.pingedAt >= PING_MS) this.ping();
  }

  /** The socket seems open and says nothing: the browser may take minutes to see that it is gone. */
  lost() {
    const { socket } = this;
    this.socket = { readyState: WebSocket.CLOSED };
    socket.close();
    this.again();
  }

  closed() {
    if (this.error && !this.error.retry) return this.refuse(this.error);
    this.again(this.error?.retry_after);
  }

  again(afterS = 0) {
    this.stopTimers();
    if (performance.now() - this.answeredAt >= STEADY_MS) this.pauseMs = FIRST_PAUSE_MS;
    this.answeredAt = Infinity;
    this.note({ status: this.wasLive ? "reconnecting" : "connecting", message: this.error?.message ?? "", code: this.error?.code ?? "" });
    const pauseMs = Math.max(afterS * 1000, this.pauseMs * (0.5 + Math.random()));
    this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
    this.opening = setTimeout(() => this.open(), pauseMs);
  }

  refuse({ message, code = "" }) {
    this.stopTimers();
    this.note({ status: "refused", message, code });
  }

  stopTimers() {
    clearInterval(this.watching);
    clearTimeout(this.opening);
  }

  note(change) {
    this.state = { ...this.state, ...change };
    this.tell({ state: this.state });
  }
}
