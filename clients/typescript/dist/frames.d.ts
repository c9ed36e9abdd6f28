/** The data frames of the streams, as /docs/streams shows them. Times are milliseconds since the epoch. `snapshot` is the client's mark of what was sent before the stream began. */
export interface PriceTick {
    symbol: string;
    bid: number;
    ask: number;
    spread: number;
    time: number;
    volume: number;
    seq: number;
    snapshot?: true;
}
export interface OrderFlowTick {
    symbol: string;
    bid_volume: number;
    ask_volume: number;
    delta: number;
    cumulative_delta: number;
    price: number;
    time: number;
    seq: number;
    snapshot?: true;
}
/** One of the same symbol, timeframe and `candle.time` replaces those before. */
export interface CandleUpdate {
    symbol: string;
    timeframe: "1m" | "5m" | "15m" | "1h" | "4h" | "1d";
    candle: {
        time: string;
        open: number;
        high: number;
        low: number;
        close: number;
        volume: number;
    };
    closed: boolean;
    time: number;
    /** Only where it is closed. */
    seq?: number;
    snapshot?: true;
}
export interface AbsorptionSignal {
    type: "absorption";
    symbol: string;
    side: "bid" | "ask";
    price: number;
    volume: number;
    delta: number;
    price_range: number;
    window_ms: number;
    strength: number;
    time: number;
    seq: number;
    snapshot?: true;
}
export interface NewSignal {
    id: string;
    user: string;
    symbol: string;
    direction: "buy" | "sell";
    entry: number;
    stop_loss: number;
    take_profit: number;
    timestamp: string;
    time: number;
}
export interface PublishedNews {
    title: string;
    category: NewsCategory;
    sentiment: "bullish" | "neutral" | "bearish";
    sentiment_score: number;
    timestamp: string;
    id: number;
    time: number;
}
export type NewsCategory = "forex" | "gold" | "crypto" | "macro";
export interface ClosedSignal extends NewSignal {
    type: "signal.closed";
    status: "closed";
    pnl: number;
    pnl_percent: number;
    pnl_r: number;
    close_price: number;
    closed_at: string;
    close_reason: "take_profit" | "stop_loss" | "manual" | "expired" | "cancelled";
}
