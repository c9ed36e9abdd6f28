import type { OrderFlowBuckets, Quotes } from "./batches.js";
import type { AbsorptionSignal, CandleUpdate, ClosedSignal, NewSignal, NewsCategory, OrderFlowTick, PriceTick, PublishedNews } from "./frames.js";
import { History, type HistoryOptions, type Span, type Timeframe } from "./history.js";
import type { paths } from "../schema.js";
import { Stream, type StreamOptions } from "./stream.js";
type Path = keyof paths & string;
type Operation<P extends Path> = paths[P]["get"];
type Query<P extends Path> = Operation<P> extends {
    parameters: {
        query?: infer Q;
    };
} ? NonNullable<Q> : Record<string, never>;
type InPath<P extends Path> = Operation<P> extends {
    parameters: {
        path: infer V;
    };
} ? V : Record<string, never>;
type Body<P extends Path> = Operation<P> extends {
    responses: {
        200: {
            content: {
                "application/json": infer B;
            };
        };
    };
} ? B : never;
type Given<P extends Path> = Record<string, never> extends InPath<P> ? [inPath?: InPath<P>, query?: Partial<Query<P>>] : [inPath: InPath<P>, query?: Partial<Query<P>>];
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
export declare class Tickwire {
    private readonly options;
    readonly url: string;
    private readonly pacing;
    constructor(options: Options);
    /** Any path of the reference, with its types: `get("/api/market/{symbol}/quote", { symbol: "BTCUSD" })`. */
    get<P extends Path>(path: P, ...[inPath, query]: Given<P>): Promise<Body<P>>;
    quote(symbol: string): Promise<{
        symbol: string;
        bid: number;
        ask: number;
        spread: number;
        timestamp: string;
    }>;
    market(symbol: string, query?: Partial<Query<"/api/market/{symbol}">>): Promise<{
        symbol: string;
        timeframe: "1m" | "5m" | "15m" | "1h" | "4h" | "1d";
        ohlcv: import("../schema.js").components["schemas"]["Candle"][];
        quote: import("../schema.js").components["schemas"]["NestedQuote"];
    }>;
    /** Quotes of several instruments at once; without a list, of all. An empty list is an error. */
    quotes(symbols?: string[]): Promise<Quotes>;
    /** Every stored closed candle: `for await (const candle of tickwire.history("EURUSD", "1m"))`. */
    history(symbol: string, timeframe?: Timeframe, options?: HistoryOptions): History;
    /** The volume bought and sold in each minute; without `start`, in the newest ones. */
    orderFlowBuckets(symbol: string, options?: Span & {
        limit?: number;
    }): Promise<OrderFlowBuckets>;
    signals(query?: Partial<Query<"/api/signals">>): Promise<{
        items: import("../schema.js").components["schemas"]["Signal"][];
        count: number;
        next?: string | null;
    }>;
    signal(id: string): Promise<{
        id: string;
        user: string;
        symbol: string;
        direction: "buy" | "sell";
        entry: number;
        stop_loss: number;
        take_profit: number;
        status: "active";
        timestamp: string;
    } | {
        id: string;
        user: string;
        symbol: string;
        direction: "buy" | "sell";
        entry: number;
        stop_loss: number;
        take_profit: number;
        status: "closed";
        timestamp: string;
        pnl: number;
        pnl_percent: number;
        pnl_r: number;
        close_price: number;
        closed_at: string;
        close_reason: "take_profit" | "stop_loss" | "manual" | "expired" | "cancelled";
    }>;
    news(query?: Partial<Query<"/api/news">>): Promise<{
        items: import("../schema.js").components["schemas"]["NewsItem"][];
        next?: string | null;
    }>;
    /** Prices as they happen: `for await (const tick of tickwire.watch(["BTCUSD"]))`. */
    watch(symbols: string[], options?: StreamOptions): Stream<PriceTick>;
    orderFlow(symbols?: string[], options?: StreamOptions): Stream<OrderFlowTick | AbsorptionSignal>;
    /** The last closed candle of each of `timeframes`, marked `snapshot`, then each candle when it closes; with `events: ["forming"]`, also its state before that. */
    followCandles(symbols: string[], options?: StreamOptions): Stream<CandleUpdate>;
    /** Signals when they are published and, with a `type`, when they end. */
    followSignals(symbols?: string[], options?: StreamOptions): Stream<NewSignal | ClosedSignal>;
    /** News items when they enter the feed; `symbols` and `categories` select, and without them you receive all. */
    followNews(options?: StreamOptions & {
        categories?: NewsCategory[];
    }): Stream<PublishedNews>;
    private follow;
    private get timeoutMs();
    private address;
    private insist;
    private ask;
}
export {};
