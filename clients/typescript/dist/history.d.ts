import type { components } from "../schema.js";
/** A Date, an ISO 8601 text (UTC unless it has a zone), or milliseconds since the epoch. */
export type Moment = Date | string | number;
type Answer = components["schemas"]["History"];
export type Timeframe = Answer["timeframe"];
export type Candle = components["schemas"]["Candle"];
export type HistoryAnswer = Pick<Answer, "ohlcv" | "next">;
export interface Span {
    /** The first time to include. By default, the first stored candle. */
    start?: Moment;
    /** The end, which is excluded. By default, now. */
    end?: Moment;
}
export interface HistoryOptions extends Span {
    /** The number of candles in a page. */
    limit?: number;
    /** Continues after a page of the same walk. */
    cursor?: string;
}
export interface Page {
    candles: Candle[];
    /** The cursor of the next page; null at the end. */
    next: string | null;
}
export interface Retries {
    /** Of the first page. */
    first: number;
    /** Of each later one, as much would be lost. */
    later: number;
}
/** Closed candles, oldest first. Each iteration starts again; pages are not kept after they have been read. */
export declare class History implements AsyncIterable<Candle> {
    private readonly ask;
    private readonly cursor;
    private readonly retries;
    constructor(ask: (cursor: string | undefined) => Promise<HistoryAnswer>, cursor: string | undefined, retries: Retries);
    [Symbol.asyncIterator](): AsyncGenerator<Candle>;
    pages(): AsyncGenerator<Page>;
    private page;
    private waitForFirst;
    private waitForNext;
}
/** As a query has it. */
export declare function plain({ start, end }: Span): Record<string, string | number | undefined>;
export {};
