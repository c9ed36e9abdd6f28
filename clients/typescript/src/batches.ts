/** Answers about many instruments or minutes at once. */
export interface Quotes {
  items: {
    symbol: string;
    bid: number;
    ask: number;
    spread: number;
    timestamp: string;
    state: "open" | "closed" | "stale";
    age_ms: number;
  }[];
  count: number;
  /** Those that are unknown, or were never quoted. */
  rejected: { symbol: string; code: string }[];
}

export interface OrderFlowBuckets {
  symbol: string;
  items: {
    time: string;
    bid_volume: number;
    ask_volume: number;
    delta: number;
    cumulative_delta: number;
    absorptions: number;
  }[];
  count: number;
}
