import type { OrderFlowBuckets, Quotes } from "./batches.js";
import { ApiError, ServiceUnreachable, TickwireError, type Refusal } from "./errors.js";
import type {
  AbsorptionSignal, CandleUpdate, ClosedSignal, NewSignal, NewsCategory, OrderFlowTick, PriceTick, PublishedNews,
} from "./frames.js";
import { History, plain, type HistoryAnswer, type HistoryOptions, type Span, type Timeframe } from "./history.js";
import type { Ask } from "./missed.js";
import { Pacing } from "./pacing.js";
import { WITHOUT_SOCKET, withUserAgent } from "./runtime.js";
import type { paths } from "../schema.js";
import { Stream, type StreamOptions } from "./stream.js";
import { insisting, waitBeforeAgain } from "./waiting.js";

type Path = keyof paths & string;
type Operation<P extends Path> = paths[P]["get"];
type Query<P extends Path> = Operation<P> extends { parameters: { query?: infer Q } } ? NonNullable<Q> : Record<string, never>;
type InPath<P extends Path> = Operation<P> extends { parameters: { path: infer V } } ? V : Record<string, never>;
type Body<P extends Path> = Operation<P> extends { responses: { 200: { content: { "application/json": infer B } } } } ? B : never;

type Given<P extends Path> = Record<string, never> extends InPath<P>
  ? [inPath?: InPath<P>, query?: Partial<Query<P>>]
  : [inPath: InPath<P>, query?: Partial<Query<P>>];

export interface Options {
  apiKey: string;
  url?: string;
  /** How often a request is repeated after a 429, a 503 or a lost connection. */
  retries?: number;
  /** The same for each page of a walk except the first. */
  walkRetries?: number;
  timeoutMs?: number;
  fetch?: typeof fetch;
  /** Needed where there is no global one (Node before 22): that of the package ws. */
  WebSocket?: typeof WebSocket;
}

const LONGEST_PAGE = 10_000;
// A long page may take a while on a slow line.
const PAGE_TIMEOUT_MS = 60_000;

type Values = Record<string, string | number | boolean | undefined>;

export class Tickwire {
  readonly url: string;
  private readonly pacing = new Pacing();

  constructor(private readonly options: Options) {
    if (!options.apiKey) throw new Error("An API key is needed: pass apiKey.");
    this.url = (options.url ?? "http://127.0.0.1:8000").replace(/\/+$/, "");
  }

  /** Any path of the reference, with its types: `get("/api/market/{symbol}/quote", { symbol: "BTCUSD" })`. */
  async get<P extends Path>(path: P, ...[inPath, query = {}]: Given<P>): Promise<Body<P>> {
    return (await this.insist(fill(path, (inPath ?? {}) as Record<string, string>), query as Values)) as Body<P>;
  }

  quote(symbol: string) {
    return this.get("/api/market/{symbol}/quote", { symbol });
  }

  market(symbol: string, query: Partial<Query<"/api/market/{symbol}">> = {}) {
    return this.get("/api/market/{symbol}", { symbol }, query);
  }

  /** Quotes of several instruments at once; without a list, of all. An empty list is an error. */
  async quotes(symbols?: string[]): Promise<Quotes> {
    const named = symbols?.join(",");
    if (named === "") throw new Error("The list of symbols is empty: name one, or call quotes() for all instruments.");
    return (await this.insist("/api/quotes", { symbols: named })) as Quotes;
  }

  /** Every stored closed candle: `for await (const candle of tickwire.history("EURUSD", "1m"))`. */
  history(symbol: string, timeframe: Timeframe = "1m", options: HistoryOptions = {}): History {
    const path = fill("/api/market/{symbol}/history", { symbol });
    const query = { timeframe, ...plain(options), limit: options.limit ?? LONGEST_PAGE };
    const timeoutMs = Math.max(PAGE_TIMEOUT_MS, this.timeoutMs);
    const ask = (cursor: string | undefined) =>
      this.ask(this.address(path, { ...query, cursor }), timeoutMs) as Promise<HistoryAnswer>;
    const { retries = 2, walkRetries = 8 } = this.options;
    return new History(ask, options.cursor, { first: retries, later: walkRetries });
  }

  /** The volume bought and sold in each minute; without `start`, in the newest ones. */
  orderFlowBuckets(symbol: string, options: Span & { limit?: number } = {}): Promise<OrderFlowBuckets> {
    const path = fill("/api/orderflow/{symbol}", { symbol });
    return this.insist(path, { ...plain(options), limit: options.limit }) as Promise<OrderFlowBuckets>;
  }

  signals(query: Partial<Query<"/api/signals">> = {}) {
    return this.get("/api/signals", {}, query);
  }

  signal(id: string) {
    return this.get("/api/signals/{id}", { id });
  }

  news(query: Partial<Query<"/api/news">> = {}) {
    return this.get("/api/news", {}, query);
  }

  /** Prices as they happen: `for await (const tick of tickwire.watch(["BTCUSD"]))`. */
  watch(symbols: string[], options: StreamOptions = {}): Stream<PriceTick> {
    return this.follow("market", { symbols, features: ["snapshot"], ...options });
  }

  orderFlow(symbols: string[] = [], options: StreamOptions = {}): Stream<OrderFlowTick | AbsorptionSignal> {
    return this.follow("orderflow", { symbols, ...options });
  }

  /** The last closed candle of each of `timeframes`, marked `snapshot`, then each candle when it closes; with `events: ["forming"]`, also its state before that. */
  followCandles(symbols: string[], options: StreamOptions = {}): Stream<CandleUpdate> {
    return this.follow("candles", { symbols, features: ["snapshot"], ...options });
  }

  /** Signals when they are published and, with a `type`, when they end. */
  followSignals(symbols: string[] = [], options: StreamOptions = {}): Stream<NewSignal | ClosedSignal> {
    return this.follow("signals", { symbols, events: ["signal.closed"], ...options });
  }

  /** News items when they enter the feed; `symbols` and `categories` select, and without them you receive all. */
  followNews(options: StreamOptions & { categories?: NewsCategory[] } = {}): Stream<PublishedNews> {
    return this.follow("news", { symbols: [], ...options });
  }

  private follow<F>(name: string, options: StreamOptions & { symbols: string[] }): Stream<F> {
    const Socket = this.options.WebSocket ?? globalThis.WebSocket;
    if (!Socket) throw new TickwireError(WITHOUT_SOCKET);
    const url = `${this.url.replace(/^http/, "ws")}/ws/${name}`;
    const ask: Ask = (path, query) => this.insist(path, query);
    return new Stream<F>(name, { url, apiKey: this.options.apiKey, Socket, ask, tries: this.options.walkRetries ?? 8 }, options);
  }

  private get timeoutMs(): number {
    return this.options.timeoutMs ?? 10_000;
  }

  private address(path: string, query: Values): URL {
    const address = new URL(this.url + path);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) address.searchParams.set(name, String(value));
    }
    return address;
  }

  private insist(path: string, query: Values): Promise<unknown> {
    const { retries = 2 } = this.options;
    return insisting(
      () => this.ask(this.address(path, query), this.timeoutMs),
      (failure, attempt) => (attempt < retries ? waitBeforeAgain(failure, attempt) : undefined),
    );
  }

  private async ask(address: URL, timeoutMs: number): Promise<unknown> {
    const send = this.options.fetch ?? fetch;
    const headers = withUserAgent({ "X-API-Key": this.options.apiKey });
    // The time-out begins when it is this request's turn.
    const asking = this.pacing.send(() => send(address, { headers, signal: AbortSignal.timeout(timeoutMs) }));
    const answer = await asking.catch((failure: unknown) => {
      throw new ServiceUnreachable(this.url, failure);
    });
    if (answer.ok) return answer.json();
    const unknown = { code: "", message: `The service answered ${answer.status}.`, status: answer.status };
    // What stands in front of the service may answer with a page.
    const body = (await answer.json().catch(() => ({}))) as { error?: Refusal };
    const after = answer.headers.get("Retry-After");
    throw new ApiError(body.error ?? unknown, after === null ? undefined : Number(after));
  }
}

function fill(path: string, values: Record<string, string>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
}
