// One socket that comes back by itself and goes on where it was: nothing is missed, nothing comes twice.
import { Refused } from "./token.js";

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 15_000;
const PING_MS = 5_000;
// The service says something at least every 10 seconds.
const SILENCE_MS = 15_000;
const FEATURES = ["seq", "snapshot", "heartbeat"];

export class Stream {
  /** `hear` gets data, `tell` what became of the connection. */
  constructor(path, token, { hear, tell, isOfAll = false, more = {} }) {
    this.path = path;
    this.isOfAll = isOfAll;
    this.token = token;
    this.hear = hear;
    this.tell = tell;
    this.more = more;
    this.symbols = [];
    this.epoch = null;
    this.positions = {};
    this.state = { status: "connecting", reconnects: 0, rtt: null, recovered: true, message: "" };
    this.pauseMs = FIRST_PAUSE_MS;
    this.wasLive = false;
  }

  want(symbols) {
    const gone = this.symbols.filter((symbol) => !symbols.includes(symbol));
    const fresh = symbols.filter((symbol) => !this.symbols.includes(symbol));
    this.symbols = [...symbols];
    for (const symbol of gone) delete this.positions[symbol];
    if (!this.socket) return this.open();
    if (this.socket.readyState !== WebSocket.OPEN || !this.wasAnswered) return;
    if (fresh.length) this.say({ action: "subscribe", symbols: fresh, features: FEATURES, ...this.more });
    if (gone.length) this.say({ action: "unsubscribe", symbols: gone });
  }

  async open() {
    // On two of the three paths no symbols would mean all of them.
    if (!this.symbols.length && !this.isOfAll) return;
    this.socket = { readyState: WebSocket.CONNECTING, close() {} };
    this.note({ status: this.wasLive ? "reconnecting" : "connecting" });
    let key;
    try {
      key = await this.token.get();
    } catch (error) {
      return error instanceof Refused && error.status === 403 ? this.refuse(error.message) : this.again();
    }
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = (this.socket = new WebSocket(`${scheme}://${location.host}${this.path}`));
    this.wasAnswered = false;
    this.error = null;
    socket.onopen = () => this.subscribe(key);
    socket.onmessage = ({ data }) => socket === this.socket && this.take(JSON.parse(data));
    socket.onclose = () => socket === this.socket && this.closed();
    this.expectSoon();
  }

  subscribe(key) {
    const message = { action: "subscribe", api_key: key, features: FEATURES, ...this.more };
    if (this.symbols.length) message.symbols = this.symbols;
    if (this.epoch && Object.keys(this.positions).length) {
      message.resume = { epoch: this.epoch, positions: this.positions };
    }
    this.asked = this.symbols;
    this.say(message);
  }

  say(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  take(frame) {
    this.expectSoon();
    if (frame.seq !== undefined) this.positions[frame.symbol] = frame.seq;
    const control = frame.type && this[`on_${frame.type}`];
    if (control) control.call(this, frame);
    else this.hear(frame);
  }

  on_subscribed({ epoch, positions = {}, unrecovered = [] }) {
    const isFirst = !this.wasAnswered;
    this.epoch = epoch ?? this.epoch;
    for (const [symbol, seq] of Object.entries(positions)) {
      if (unrecovered.includes(symbol) || this.positions[symbol] === undefined) this.positions[symbol] = seq;
    }
    if (!isFirst) return;
    this.wasAnswered = true;
    this.pauseMs = FIRST_PAUSE_MS;
    const missed = this.wasLive && unrecovered.length > 0;
    this.note({
      status: "live",
      reconnects: this.state.reconnects + (this.wasLive ? 1 : 0),
      recovered: !missed,
      message: "",
    });
    this.wasLive = true;
    if (missed) this.tell({ missed: unrecovered });
    this.ping();
    // What was wanted while the answer was under way.
    const wanted = this.symbols;
    this.symbols = this.asked;
    this.want(wanted);
  }

  on_gap({ symbols, epoch }) {
    this.epoch = epoch;
    for (const symbol of symbols) delete this.positions[symbol];
    this.tell({ missed: symbols });
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

  on_heartbeat() {}
  on_notice() {}
  on_unsubscribed() {}

  ping() {
    clearTimeout(this.pinging);
    if (this.socket.readyState !== WebSocket.OPEN) return;
    this.pingedAt = performance.now();
    this.say({ action: "ping" });
    this.pinging = setTimeout(() => this.ping(), PING_MS);
  }

  expectSoon() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.lost(), SILENCE_MS);
  }

  /** The socket seems open and says nothing: the browser may take minutes to see that it is gone. */
  lost() {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.again();
  }

  closed() {
    if (this.error && !this.error.retry) return this.refuse(this.error.message);
    this.again(this.error?.retry_after);
  }

  again(afterS = 0) {
    this.stopTimers();
    this.note({ status: this.wasLive ? "reconnecting" : "connecting", message: this.error?.message ?? "" });
    const pauseMs = Math.max(afterS * 1000, this.pauseMs * (0.5 + Math.random()));
    this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
    this.opening = setTimeout(() => this.open(), pauseMs);
  }

  refuse(message) {
    this.stopTimers();
    this.note({ status: "refused", message });
  }

  stopTimers() {
    for (const timer of [this.pinging, this.silence, this.opening]) clearTimeout(timer);
  }

  note(change) {
    this.state = { ...this.state, ...change };
    this.tell({ state: this.state });
  }
}
