export { ApiError, StreamError } from "./errors.js";
export { Tickwire, type Options } from "./client.js";
export { Stream, type Notice, type StreamOptions, type Timeframe } from "./stream.js";
export type {
  AbsorptionSignal, CandleUpdate, ClosedSignal, NewSignal, NewsCategory, OrderFlowTick, PriceTick, PublishedNews,
} from "./frames.js";
export type { components, operations } from "./schema.js";
