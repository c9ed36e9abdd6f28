import { ApiError, type Refusal } from "./errors.js";
import type {
  AbsorptionSignal, CandleUpdate, ClosedSignal, NewSignal, NewsCategory, OrderFlowTick, PriceTick, PublishedNews,
} from "./frames.js";
import type { paths } from "./schema.js";
import { Stream, type StreamOptions } from "./stream.js";

type Path = keyof paths & string;
type Operation<P extends Path> = paths[P]["get"];
type Query<P extends Path> = Operation<P> extends { parameters: { query?: infer Q } } ? NonNullable<Q> : Record<string, never>;
type InPath<P extends Path> = Operation<P> extends { parameters: { path: infer V } } ? V : Record<string, never>;
type Body<P extends Path> = Operation<P> extends { responses: { 200: { content: { "application/json": infer B } } } } ? B : never;

export interface Options {
  apiKey: string;
  url?: string;
  /** How often a request is sent again after a 429, a 503 or a broken connection. */
  retries?: number;
  timeoutMs?: number;
  fetch?: typeof fetch;
  /** Where there is no global one (Node before 22): that of the package ws. */
  WebSocket?: typeof WebSocket;
}

const LONGEST_WAIT_S = 60;
const PASSING = ["rate_limit_exceeded", "overloaded", "quote_unavailable"];

export class Tickwire {
  readonly url: string;

  constructor(private readonly options: Options) {
    if (!options.apiKey) throw new Error("An API key is needed: pass apiKey.");
    this.url = (options.url ?? "http://127.0.0.1:8000").replace(/\/+$/, "");
  }

  /** Any path of the reference, typed by it: `get("/api/market/{symbol}/quote", { symbol: "BTCUSD" })`. */
  async get<P extends Path>(path: P, inPath: InPath<P>, query: Partial<Query<P>> = {}): Promise<Body<P>> {
    const address = new URL(this.url + fill(path, inPath as Record<string, string>));
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) address.searchParams.set(name, String(value));
    }
    const retries = this.options.retries ?? 2;
    for (let attempt = 0; ; attempt++) {
      try {
        return (await this.ask(address)) as Body<P>;
      } catch (failure) {
        const waitS = attempt < retries ? waitBeforeAgain(failure, attempt) : undefined;
        if (waitS === undefined) throw failure;
        await new Promise((done) => setTimeout(done, 1000 * waitS));
      }
    }
  }

  quote(symbol: string) {
    return this.get("/api/market/{symbol}/quote", { symbol });
  }

  market(symbol: string, query: Partial<Query<"/api/market/{symbol}">> = {}) {
    return this.get("/api/market/{symbol}", { symbol }, query);
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
    return this.stream("/ws/market", { symbols, features: ["snapshot"], ...options });
  }

  orderFlow(symbols: string[] = [], options: StreamOptions = {}): Stream<OrderFlowTick | AbsorptionSignal> {
    return this.stream("/ws/orderflow", { symbols, ...options });
  }

  /** The last closed candle of each of `timeframes`, then each as it is closed; with `events: ["forming"]` its state before that too. */
  followCandles(symbols: string[], options: StreamOptions = {}): Stream<CandleUpdate> {
    return this.stream("/ws/candles", { symbols, features: ["snapshot"], ...options });
  }

  /** New signals and, with a `type`, how they end. */
  followSignals(symbols: string[] = [], options: StreamOptions = {}): Stream<NewSignal | ClosedSignal> {
    return this.stream("/ws/signals", { symbols, events: ["signal.closed"], ...options });
  }

  /** News as it enters the feed; `symbols` and `categories` choose, none of either means all. */
  followNews(options: StreamOptions & { categories?: NewsCategory[] } = {}): Stream<PublishedNews> {
    return this.stream("/ws/news", { symbols: [], ...options });
  }

  private stream<F>(path: string, options: StreamOptions & { symbols: string[] }): Stream<F> {
    const Socket = this.options.WebSocket ?? globalThis.WebSocket;
    if (!Socket) throw new Error("There is no WebSocket here: pass that of the package ws as WebSocket.");
    return new Stream<F>(this.url.replace(/^http/, "ws") + path, this.options.apiKey, Socket, options);
  }

  private async ask(address: URL): Promise<unknown> {
    const send = this.options.fetch ?? fetch;
    const signal = AbortSignal.timeout(this.options.timeoutMs ?? 10_000);
    const answer = await send(address, { headers: { "X-API-Key": this.options.apiKey }, signal });
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

function waitBeforeAgain(failure: unknown, attempt: number): number | undefined {
  if (!(failure instanceof ApiError)) return 0.25 * 2 ** attempt;
  const { code, retryAfter } = failure;
  return PASSING.includes(code) && retryAfter !== undefined && retryAfter <= LONGEST_WAIT_S ? retryAfter : undefined;
}
