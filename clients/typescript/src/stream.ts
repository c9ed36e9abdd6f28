import { ServiceUnreachable, StreamError, type Refusal } from "./errors.js";
import type { Timeframe } from "./history.js";
import { Fill, warn, type Ask, type Hole, type Missed } from "./missed.js";
import { opened } from "./runtime.js";
import { State, type Place } from "./state.js";

export interface StreamOptions {
  symbols?: string[];
  features?: string[];
  events?: string[];
  /** Of candles, for all symbols. By default, 1m. */
  timeframes?: Timeframe[];
  /** Only news of these categories. */
  categories?: string[];
  /** Receives every hole in the stream. By default, a warning on the console. */
  onMissed?: (missed: Missed) => void;
  /** Receives notices: `stale` when prices stop and `live` when they continue, `deactivated` for symbols that are no longer offered and `activated` when they are again, `new_series` when real prices replace simulated ones or vice versa, and `restarting`. */
  onNotice?: (notice: Notice) => void;
  /** Starts after this place: the id of a signal, "closed:" and the id of a closed one, or the id of a news item as a string. By default, from now on. */
  since?: string;
  /** Goes on from its places, and moves them. */
  state?: State;
  /** Of prices and candles: fetches missing frames over REST. They come before the one that showed that they are missing. */
  fill?: boolean;
}

export interface Notice {
  type: "notice";
  code: "restarting" | "stale" | "live" | "deactivated" | "activated" | "new_series";
  symbols?: string[];
  time: number;
}

/** How a stream reaches the service. */
export interface Reach {
  url: string;
  apiKey: string;
  Socket: typeof WebSocket;
  ask: Ask;
  /** How often a refused stream is asked for again. */
  tries: number;
}

interface Frame {
  type?: string;
  symbol?: string;
  timeframe?: string;
  candle?: { time: string };
  time?: number;
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
  time: number;
}

interface Gap {
  symbols: string[];
  epoch: string;
  positions?: Record<string, number>;
  time: number;
}

/** What waits to be read. The state moves when it is. */
interface Waiting<F> {
  frame?: F;
  hole?: Hole;
  settle: () => void;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 15_000;
// What breaks off sooner than this after its reply has not come back: the waits go on growing.
const STEADY_MS = 10_000;
// The service says something at least every ten seconds.
const SILENCE_MS = 20_000;
// A browser's socket takes whatever comes: who reads no more would fill its memory.
const MOST_WAITING = 100_000;
const SILENT = new Set(["heartbeat", "pong", "unsubscribed", "subscriptions"]);

/** Frames as they arrive. After a lost connection, the stream reconnects and continues where it was. */
export class Stream<F> implements AsyncIterable<F> {
  private waiting: Waiting<F>[] = [];
  private wake: (() => void) | undefined;
  private failure: Error | undefined;
  private socket: WebSocket | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private refusal: (Refusal & { retry: boolean }) | undefined;
  private readonly state: State;
  /** Of what was received; the state has those of what was read. */
  private readonly places: Map<string, Place>;
  private epoch: string | undefined;
  /** Keys with a place that this connection could not resume from. */
  private lostKeys = new Set<string>();
  /** Keys of which no frame has come since the reply. */
  private fresh = new Set<string>();
  private since: string | undefined;
  private waitMs = FIRST_WAIT_MS;
  private failures = 0;
  private refusals = 0;
  private wasLive = false;
  private answeredAt: number | undefined;
  private isClosed = false;

  constructor(
    private readonly name: string,
    private readonly reach: Reach,
    private readonly options: StreamOptions,
  ) {
    this.state = options.state ?? new State();
    if (options.since !== undefined) this.state.moveSince(name, options.since);
    this.since = this.state.since(name);
    this.places = new Map([...this.state.places(name)].filter(([key]) => this.wants(key)));
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
        for (let next = this.waiting.shift(); next; next = this.waiting.shift()) {
          if (next.hole) yield* this.fill(next.hole);
          next.settle();
          if (next.frame !== undefined) yield next.frame;
        }
        if (this.failure) throw this.failure;
        if (this.isClosed) return;
        if (!this.waiting.length) await new Promise<void>((done) => (this.wake = done));
      }
    } finally {
      this.close();
    }
  }

  /** The frames that are missing, and then the report. */
  private async *fill(hole: Hole): AsyncGenerator<F> {
    let { missed } = hole;
    if (this.options.fill && hole.before && hole.after && ["market", "candles"].includes(this.name)) {
      const fill = new Fill(this.reach.ask, hole, hole.before, hole.after);
      try {
        for await (const { frame, place } of fill.frames()) {
          this.state.move(this.name, hole.key, place);
          yield frame as F;
        }
      } catch (failure) {
        console.warn(`Missed frames of ${hole.key} could not be fetched: ${String(failure)}`);
      }
      missed = fill.missed;
    }
    (this.options.onMissed ?? warn)(missed);
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.socket?.close();
    this.wake?.();
  }

  private open(): void {
    const { Socket, url } = this.reach;
    const socket = (this.socket = opened(Socket, url));
    this.refusal = undefined;
    this.answeredAt = undefined;
    socket.onopen = () => socket.send(JSON.stringify(this.subscribe()));
    socket.onmessage = ({ data }) => socket === this.socket && this.hear(JSON.parse(String(data)));
    socket.onclose = () => socket === this.socket && this.lost();
    // Node 20 says no more than this of a connection that cannot be made.
    socket.onerror = () => socket === this.socket && socket.readyState !== socket.OPEN && this.lost();
    this.expectSoon();
  }

  private subscribe(): object {
    const { symbols = [], features = [], events, timeframes, categories } = this.options;
    return {
      action: "subscribe",
      api_key: this.reach.apiKey,
      features: [...new Set(["seq", "heartbeat", ...features])],
      ...(symbols.length && { symbols }),
      ...(events && { events }),
      ...(timeframes && { timeframes }),
      ...(categories?.length && { categories }),
      ...(this.since !== undefined && { since: this.since }),
      ...this.resume(),
    };
  }

  private resume(): object {
    const places = [...this.places];
    const epoch = this.epoch ?? places.reduce<Place | undefined>((newest, [, each]) => (newest && newest.time > each.time ? newest : each), undefined)?.epoch;
    const positions = places.filter(([, place]) => place.epoch === epoch).map(([key, { seq }]) => [key, seq] as const);
    this.lostKeys = new Set(places.filter(([, place]) => place.epoch !== epoch).map(([key]) => key));
    return positions.length ? { resume: { epoch, positions: Object.fromEntries(positions) } } : {};
  }

  /** A state may have places of symbols that are not followed this time. */
  private wants(key: string): boolean {
    const [symbol, timeframe] = key.split("/");
    const { symbols = [], timeframes = ["1m"] } = this.options;
    const isNamed = !symbols.length || symbols.some((each) => each.toUpperCase() === symbol);
    return isNamed && (timeframe === undefined || (timeframes as string[]).includes(timeframe));
  }

  private hear(frame: Frame & Record<string, unknown>): void {
    if (this.isClosed) return;
    this.expectSoon();
    const { type } = frame;
    if (type === "subscribed") this.takeReply(frame as unknown as Reply);
    else if (type === "gap") this.takeGap(frame as unknown as Gap);
    else if (type === "error") this.takeError(frame as unknown as { error: Refusal; fatal: boolean; retry: boolean });
    else if (type === "notice") this.options.onNotice?.(frame as unknown as Notice);
    else if (type === "conflated") this.passOver(frame as unknown as { symbol: string; dropped: number });
    else if (!type || !SILENT.has(type)) this.take(frame);
  }

  private takeReply({ symbols, rejected, epoch, positions = {}, unrecovered = [], since, time }: Reply): void {
    if (rejected.length && !symbols.length && !this.wasLive) {
      const unknown = rejected.map(({ symbol }) => symbol).join(", ");
      return this.fail({ code: "symbol_not_found", status: 404, message: `There is no such symbol: ${unknown}.` });
    }
    this.epoch = epoch;
    const lost = new Set([...unrecovered, ...[...this.lostKeys].filter((key) => key in positions)]);
    for (const [key, seq] of Object.entries(positions)) {
      if (this.places.has(key)) continue;
      // Of 0 nothing was ever sent.
      if (this.wasLive && seq) lost.add(key);
      else this.push(key, { epoch: epoch ?? "", seq, time });
    }
    // Of signals and news the place is that of the reply until the first of them comes.
    if (epoch === undefined && this.wasLive && this.since === undefined) for (const symbol of symbols) lost.add(symbol);
    if (since !== undefined) {
      this.since = since;
      this.waiting.push({ settle: () => this.state.moveSince(this.name, since) });
    }
    this.fresh = new Set(Object.keys(positions));
    this.wasLive = true;
    this.refusals = 0;
    this.answeredAt = performance.now();
    this.lose([...lost].sort(), positions, time);
  }

  private takeGap({ symbols, epoch, positions = {}, time }: Gap): void {
    this.epoch = epoch;
    const isLost = (key: string) => symbols.includes("*") || symbols.includes(key.split("/")[0] ?? key);
    const keys = [...this.places.keys()].filter(isLost);
    // The numbers of the others go on.
    for (const [key, place] of this.places) if (!isLost(key)) this.push(key, { ...place, epoch });
    this.lose(keys.length ? keys : symbols, positions, time);
  }

  private lose(keys: string[], positions: Record<string, number>, time: number): void {
    for (const key of keys) {
      const seq = positions[key];
      this.miss(key, seq === undefined ? undefined : { epoch: this.epoch ?? "", seq, time }, time);
    }
    this.wake?.();
  }

  private miss(key: string, after: Place | undefined, endMs: number): void {
    const before = this.places.get(key);
    const isOneNumbering = before !== undefined && before.epoch === after?.epoch;
    if (isOneNumbering && before.seq === after.seq) return;
    const [first, last] = isOneNumbering && before.seq < after.seq ? [before.seq + 1, after.seq] : [null, null];
    const [symbol = key, timeframe] = key.split("/");
    const times = { startMs: before?.time ?? null, endMs };
    const missed = { symbol, ...(timeframe && { timeframe }), first, last, ...times, filled: null, isFilled: false };
    this.push(key, after, { hole: { missed, key, before, after } });
  }

  private passOver({ symbol, dropped }: { symbol: string; dropped: number }): void {
    // What was left out is known to be: no hole.
    const place = this.places.get(symbol);
    if (place) this.push(symbol, { ...place, seq: place.seq + dropped });
  }

  private takeError({ error, fatal, retry }: { error: Refusal; fatal: boolean; retry: boolean }): void {
    if (fatal) this.refusal = { ...error, retry };
    else this.fail(error);
  }

  private take(frame: Frame): void {
    const { seq, id, symbol, timeframe, candle } = frame;
    if (id !== undefined) {
      const since = (this.since = frame.type === "signal.closed" ? `closed:${id}` : String(id));
      this.waiting.push({ frame: frame as F, settle: () => this.state.moveSince(this.name, since) });
    } else if (seq === undefined || symbol === undefined) {
      this.waiting.push({ frame: frame as F, settle: () => {} });
    } else {
      // Candles are numbered by symbol and timeframe: EURUSD/1m.
      const key = timeframe ? `${symbol}/${timeframe}` : symbol;
      this.takeNumbered(frame, key, seq, candle ? Date.parse(candle.time) : (frame.time ?? 0));
    }
    if (this.waiting.length > MOST_WAITING) {
      const message = `${MOST_WAITING} frames wait to be read. Read faster, or watch fewer symbols.`;
      return this.fail({ code: "slow_reader", status: 0, message });
    }
    this.wake?.();
  }

  private takeNumbered(frame: Frame, key: string, seq: number, time: number): void {
    const place = this.places.get(key);
    const isFirst = this.fresh.delete(key);
    const epoch = this.epoch ?? "";
    if (place && place.epoch === epoch && seq <= place.seq) {
      // What came twice is one frame; only a snapshot is of before.
      if (isFirst) this.push(key, { ...place, time }, { frame: { ...frame, snapshot: true } as F });
      return;
    }
    if (place && !(place.epoch === epoch && seq === place.seq + 1)) this.miss(key, { epoch, seq: seq - 1, time }, time);
    this.push(key, { epoch, seq, time }, { frame: frame as F });
  }

  /** What was received moves the place now; when it has been read, the state's. */
  private push(key: string, place: Place | undefined, what: { frame?: F; hole?: Hole } = {}): void {
    if (place) this.places.set(key, place);
    else this.places.delete(key);
    this.waiting.push({ ...what, settle: () => this.state.move(this.name, key, place) });
  }

  private fail(refusal: Refusal): void {
    this.end(new StreamError(refusal));
  }

  private end(failure: Error): void {
    this.failure = failure;
    this.close();
  }

  private lost(): void {
    clearTimeout(this.timer);
    this.socket = undefined;
    if (this.isClosed) return;
    if (this.refusal && this.answeredAt === undefined) this.refusals += 1;
    if (this.refusal && (!this.refusal.retry || this.refusals > this.reach.tries)) return this.fail(this.refusal);
    this.failures += 1;
    if (!this.wasLive && this.failures > this.reach.tries) {
      return this.end(new ServiceUnreachable(this.reach.url, new Error("the stream cannot be opened")));
    }
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
      this.lost();
      silent?.close();
    }, SILENCE_MS);
  }
}
