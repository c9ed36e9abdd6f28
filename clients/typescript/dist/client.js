import { ApiError, ServiceUnreachable, TickwireError } from "./errors.js";
import { History, plain } from "./history.js";
import { Pacing } from "./pacing.js";
import { WITHOUT_SOCKET, withUserAgent } from "./runtime.js";
import { Stream } from "./stream.js";
import { insisting, waitBeforeAgain } from "./waiting.js";
const LONGEST_PAGE = 10_000;
// A long page may take a while on a slow line.
const PAGE_TIMEOUT_MS = 60_000;
export class Tickwire {
    options;
    url;
    pacing = new Pacing();
    constructor(options) {
        this.options = options;
        if (!options.apiKey)
            throw new Error("An API key is needed: pass apiKey.");
        this.url = (options.url ?? "http://127.0.0.1:8000").replace(/\/+$/, "");
    }
    /** Any path of the reference, with its types: `get("/api/market/{symbol}/quote", { symbol: "BTCUSD" })`. */
    async get(path, ...[inPath, query = {}]) {
        return (await this.insist(fill(path, (inPath ?? {})), query));
    }
    quote(symbol) {
        return this.get("/api/market/{symbol}/quote", { symbol });
    }
    market(symbol, query = {}) {
        return this.get("/api/market/{symbol}", { symbol }, query);
    }
    /** Quotes of several instruments at once; without a list, of all. An empty list is an error. */
    async quotes(symbols) {
        const named = symbols?.join(",");
        if (named === "")
            throw new Error("The list of symbols is empty: name one, or call quotes() for all instruments.");
        return (await this.insist("/api/quotes", { symbols: named }));
    }
    /** Every stored closed candle: `for await (const candle of tickwire.history("EURUSD", "1m"))`. */
    history(symbol, timeframe = "1m", options = {}) {
        const path = fill("/api/market/{symbol}/history", { symbol });
        const query = { timeframe, ...plain(options), limit: options.limit ?? LONGEST_PAGE };
        const timeoutMs = Math.max(PAGE_TIMEOUT_MS, this.timeoutMs);
        const ask = (cursor) => this.ask(this.address(path, { ...query, cursor }), timeoutMs);
        const { retries = 2, walkRetries = 8 } = this.options;
        return new History(ask, options.cursor, { first: retries, later: walkRetries });
    }
    /** The volume bought and sold in each minute; without `start`, in the newest ones. */
    orderFlowBuckets(symbol, options = {}) {
        const path = fill("/api/orderflow/{symbol}", { symbol });
        return this.insist(path, { ...plain(options), limit: options.limit });
    }
    signals(query = {}) {
        return this.get("/api/signals", {}, query);
    }
    signal(id) {
        return this.get("/api/signals/{id}", { id });
    }
    news(query = {}) {
        return this.get("/api/news", {}, query);
    }
    /** Prices as they happen: `for await (const tick of tickwire.watch(["BTCUSD"]))`. */
    watch(symbols, options = {}) {
        return this.follow("market", { symbols, features: ["snapshot"], ...options });
    }
    orderFlow(symbols = [], options = {}) {
        return this.follow("orderflow", { symbols, ...options });
    }
    /** The last closed candle of each of `timeframes`, marked `snapshot`, then each candle when it closes; with `events: ["forming"]`, also its state before that. */
    followCandles(symbols, options = {}) {
        return this.follow("candles", { symbols, features: ["snapshot"], ...options });
    }
    /** Signals when they are published and, with a `type`, when they end. */
    followSignals(symbols = [], options = {}) {
        return this.follow("signals", { symbols, events: ["signal.closed"], ...options });
    }
    /** News items when they enter the feed; `symbols` and `categories` select, and without them you receive all. */
    followNews(options = {}) {
        return this.follow("news", { symbols: [], ...options });
    }
    follow(name, options) {
        const Socket = this.options.WebSocket ?? globalThis.WebSocket;
        if (!Socket)
            throw new TickwireError(WITHOUT_SOCKET);
        const url = `${this.url.replace(/^http/, "ws")}/ws/${name}`;
        const ask = (path, query) => this.insist(path, query);
        return new Stream(name, { url, apiKey: this.options.apiKey, Socket, ask, tries: this.options.walkRetries ?? 8 }, options);
    }
    get timeoutMs() {
        return this.options.timeoutMs ?? 10_000;
    }
    address(path, query) {
        const address = new URL(this.url + path);
        for (const [name, value] of Object.entries(query)) {
            if (value !== undefined)
                address.searchParams.set(name, String(value));
        }
        return address;
    }
    insist(path, query) {
        const { retries = 2 } = this.options;
        return insisting(() => this.ask(this.address(path, query), this.timeoutMs), (failure, attempt) => (attempt < retries ? waitBeforeAgain(failure, attempt) : undefined));
    }
    async ask(address, timeoutMs) {
        const send = this.options.fetch ?? fetch;
        const headers = withUserAgent({ "X-API-Key": this.options.apiKey });
        // The time-out begins when it is this request's turn.
        const asking = this.pacing.send(() => send(address, { headers, signal: AbortSignal.timeout(timeoutMs) }));
        const answer = await asking.catch((failure) => {
            throw new ServiceUnreachable(this.url, failure);
        });
        if (answer.ok)
            return answer.json();
        const unknown = { code: "", message: `The service answered ${answer.status}.`, status: answer.status };
        // What stands in front of the service may answer with a page.
        const body = (await answer.json().catch(() => ({})));
        const after = answer.headers.get("Retry-After");
        throw new ApiError(body.error ?? unknown, after === null ? undefined : Number(after));
    }
}
function fill(path, values) {
    return path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ""));
}
