export { ApiError, StreamError } from "./errors.js";
export { Tickwire, type Options } from "./client.js";
export { Stream, type Notice, type StreamOptions } from "./stream.js";
export type { AbsorptionSignal, ClosedSignal, NewSignal, NewsCategory, OrderFlowTick, PriceTick, PublishedNews } from "./frames.js";
export type { components, operations } from "./schema.js";
