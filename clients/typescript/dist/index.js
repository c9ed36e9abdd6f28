export { ApiError, ServiceUnreachable, StateError, StreamError, TickwireError, WalkInterrupted } from "./errors.js";
export { Tickwire } from "./client.js";
export { History } from "./history.js";
export { State } from "./state.js";
export { Stream } from "./stream.js";
