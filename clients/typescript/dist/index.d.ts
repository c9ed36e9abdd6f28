export type { OrderFlowBuckets, Quotes } from "./batches.js";
export { ApiError, ServiceUnreachable, StateError, StreamError, TickwireError, WalkInterrupted } from "./errors.js";
export { Tickwire, type Options } from "./client.js";
export { History, type Candle, type HistoryOptions, type Moment, type Page, type Span, type Timeframe } from "./history.js";
export type { Missed } from "./missed.js";
export { State } from "./state.js";
export { Stream, type Notice, type StreamOptions } from "./stream.js";
export type { AbsorptionSignal, CandleUpdate, ClosedSignal, NewSignal, NewsCategory, OrderFlowTick, PriceTick, PublishedNews, } from "./frames.js";
export type { components, operations } from "../schema.js";
