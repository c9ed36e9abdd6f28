import type { components } from "../schema.js";
/** Quotes of many instruments at once. */
export type Quotes = components["schemas"]["QuoteList"];
/** Order flow of many minutes. */
export type OrderFlowBuckets = components["schemas"]["OrderFlow"];
