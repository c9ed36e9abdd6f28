import { StreamError, type Refusal } from "./errors.js";
import type { Timeframe } from "./history.js";
import { opened } from "./runtime.js";

export interface StreamOptions {
  symbols?: string[];
  features?: string[];
  events?: string[];
  /** Of candles, for all symbols. By default, 1m. */
  timeframes?: Timeframe[];
  /** Only news of these categories. */
  categories?: string[];
  /** Receives the symbols of which something was missed and could not be recovered. */
  onMissed?: (symbols: string[]) => void;
  /** Receives notices: `stale` when prices stop and `live` when they continue, `deactivated` for symbols that are no longer offered and `activated` when they are again, `new_series` when real prices replace simulated ones or vice versa, and `restarting`. */
  onNotice?: (notice: Notice) => void;
  /** Starts after this place: the id of a signal, "closed:" and the id of a closed one, or the id of a news item as a string. By default, from now on. */
  since?: string;
}

export interface Notice {
  type: "notice";
  code: "restarting" | "stale" | "live" | "deactivated" | "activated" | "new_series";
  symbols?: string[];
  time: number;
}

interface Frame {
  type?: string;
  symbol?: string;
  timeframe?: string;
  seq?: number;
  id?: string | number;
}

interface Reply {
  symbols: string[];
  rejected: { symbol: string }[];
  epoch?: string;
  positions?: Record<string, number>;
  unrecovered?: string[];
  since?: string;
}

interface Gap {
  symbols: string[];
  epoch: string;
  positions?: Record<string, number>;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 15_000;
// What breaks off sooner than this after its reply has not come back: the waits go on growing.
const STEADY_MS = 10_000;
// The service says something at least every ten seconds.
const SILENCE_MS = 20_000;
// A browser's socket takes whatever comes: who reads no more would fill its memory.
const MOST_WAITING = 100_000;
const SILENT = new Set(["heartbeat", "pong", "unsubscribed", "subscriptions", "conflated"]);

/** Frames as they arrive. After a lost connection, the stream reconnects and continues where it was. */
export class Stream<F> implements AsyncIterable<F> {
  private frames: F[] = [];
  private wake: (() => void) | undefined;
  private failure: Error | undefined;
  private socket: WebSocket | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private refusal: (Refusal & { retry: boolean }) | undefined;
  private epoch: string | undefined;
  private positions: Record<string, number> = {};
  private since: string | undefined;
  private waitMs = FIRST_WAIT_MS;
  private wasLive = false;
  private answeredAt: number | undefined;
  private isClosed = false;

  constructor(
    private readonly url: string,
    private readonly apiKey: string,
    private readonly Socket: typeof WebSocket,
    private readonly options: StreamOptions,
  ) {
    this.since = options.since;
    this.open();
  }

  [Symbol.asyncIterator](): AsyncGenerator<F> {
    const frames = this.read();
    const end = frames.return.bind(frames);
    // A generator that waits for a frame hears of its end only after that frame.
    frames.return = (value) => {
      this.close();
      return end(value);
    };
    return frames;
  }

  private async *read(): AsyncGenerator<F> {
    try {
      for (;;) {
        yield* this.frames.splice(0);
        if (this.failure) throw this.failure;
        if (this.isClosed) return;
        if (!this.frames.length) await new Promise<void>((done) => (this.wake = done));
      }
    } finally {
      this.close();
    }
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.socket?.close();
    this.wake?.();
  }

  private open(): void {
    const socket = (this.socket = opened(this.Socket, this.url));
    this.refusal = undefined;
    this.answeredAt = undefined;
    socket.onopen = () => socket.send(JSON.stringify(this.subscribe()));
    socket.onmessage = ({ data }) => socket === this.socket && this.hear(JSON.parse(String(data)));
    socket.onclose = () => socket === this.socket && this.lost();
    socket.onerror = () => {};
    this.expectSoon();
  }

  private subscribe(): object {
    const { symbols = [], features = [], events, timeframes, categories } = this.options;
    return {
      action: "subscribe",
      api_key: this.apiKey,
      features: [...new Set(["seq", "heartbeat", ...features])],
      ...(symbols.length && { symbols }),
      ...(events && { events }),
      ...(timeframes && { timeframes }),
      ...(categories?.length && { categories }),
      ...(this.since !== undefined && { since: this.since }),
      ...(this.epoch !== undefined &&
        Object.keys(this.positions).length && { resume: { epoch: this.epoch, positions: this.positions } }),
    };
  }

  private hear(frame: Frame & Record<string, unknown>): void {
    if (this.isClosed) return;
    this.expectSoon();
    const { type } = frame;
    if (type === "subscribed") this.takeReply(frame as unknown as Reply);
    else if (type === "gap") this.takeGap(frame as unknown as Gap);
    else if (type === "error") this.takeError(frame as unknown as { error: Refusal; fatal: boolean; retry: boolean });
    else if (type === "notice") this.options.onNotice?.(frame as unknown as Notice);
    else if (!type || !SILENT.has(type)) this.take(frame);
  }

  private takeReply({ symbols, rejected, epoch, positions = {}, unrecovered = [], since }: Reply): void {
    if (rejected.length && !symbols.length && !this.wasLive) {
      const unknown = rejected.map(({ symbol }) => symbol).join(", ");
      return this.fail({ code: "symbol_not_found", status: 404, message: `There is no such symbol: ${unknown}.` });
    }
    this.epoch = epoch;
    const lost = new Set(unrecovered);
    for (const [symbol, seq] of Object.entries(positions)) {
      const isPlaceless = !(symbol in this.positions);
      if (lost.has(symbol) || isPlaceless) this.positions[symbol] = seq;
      // Of 0 nothing was ever sent.
      if (isPlaceless && this.wasLive && seq) lost.add(symbol);
    }
    // Of signals and news the place is that of the reply until the first of them comes.
    if (epoch === undefined && this.wasLive && this.since === undefined) for (const symbol of symbols) lost.add(symbol);
    if (since !== undefined) this.since = since;
    this.wasLive = true;
    this.answeredAt = performance.now();
    if (lost.size) this.missed([...lost].sort());
  }

  private takeGap({ symbols, epoch, positions = {} }: Gap): void {
    this.epoch = epoch;
    const kept = Object.entries(this.positions).filter(([key]) => !symbols.includes(key.split("/")[0] ?? key));
    this.positions = { ...(symbols.includes("*") ? {} : Object.fromEntries(kept)), ...positions };
    this.missed(symbols);
  }

  private takeError({ error, fatal, retry }: { error: Refusal; fatal: boolean; retry: boolean }): void {
    if (fatal) this.refusal = { ...error, retry };
    else this.fail(error);
  }

  private take(frame: Frame): void {
    // Candles are numbered by symbol and timeframe: EURUSD/1m.
    const key = frame.timeframe ? `${frame.symbol}/${frame.timeframe}` : frame.symbol;
    if (frame.seq !== undefined && key) this.positions[key] = frame.seq;
    if (frame.id !== undefined) this.since = frame.type === "signal.closed" ? `closed:${frame.id}` : String(frame.id);
    this.frames.push(frame as F);
    if (this.frames.length > MOST_WAITING) {
      const message = `${MOST_WAITING} frames wait to be read. Read faster, or watch fewer symbols.`;
      return this.fail({ code: "slow_reader", status: 0, message });
    }
    this.wake?.();
  }

  private missed(symbols: string[]): void {
    const tell = this.options.onMissed ?? ((names) => console.warn(`Something was missed of ${names.join(", ")}`));
    tell(symbols);
  }

  private fail(refusal: Refusal): void {
    this.failure = new StreamError(refusal);
    this.close();
  }

  private lost(): void {
    clearTimeout(this.timer);
    if (this.isClosed) return;
    if (this.refusal && !this.refusal.retry) return this.fail(this.refusal);
    const wasSteady = this.answeredAt !== undefined && performance.now() - this.answeredAt >= STEADY_MS;
    if (wasSteady) this.waitMs = FIRST_WAIT_MS;
    const waitMs = Math.max(this.waitMs * (0.5 + Math.random() / 2), 1000 * (this.refusal?.retry_after ?? 0));
    this.waitMs = Math.min(2 * this.waitMs, LONGEST_WAIT_MS);
    this.timer = setTimeout(() => this.open(), waitMs);
  }

  private expectSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const silent = this.socket;
      this.socket = undefined;
      silent?.close();
      this.lost();
    }, SILENCE_MS);
  }
}
