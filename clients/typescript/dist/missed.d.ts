import type { Place } from "./state.js";
/** A hole in a stream. */
export interface Missed {
    /** Or "*" if it is not known of which. */
    symbol: string;
    /** Of candles. */
    timeframe?: string;
    /** The numbers (`seq`) of the first and the last missing frame; null if the numbering began again in between, or if the stream has no numbers. */
    first: number | null;
    last: number | null;
    /** The times of the frames before and after it, or of the service's reply where there is none; of candles, when they opened. Null if nothing came before. */
    startMs: number | null;
    endMs: number;
    /** How many frames were fetched over REST; null if that was not tried. */
    filled: number | null;
    /** Whether these are all. */
    isFilled: boolean;
}
/** What a stream knows of it. */
export interface Hole {
    missed: Missed;
    key: string;
    before: Place | undefined;
    /** Where the stream goes on. */
    after: Place | undefined;
}
/** Asks for a page of a path, and waits its turn. */
export type Ask = (path: string, query: Record<string, string | number | undefined>) => Promise<unknown>;
export interface Fetched {
    frame: object;
    place: Place;
}
/** What was missed of one hole, as far as it was fetched. */
export declare class Fill {
    private readonly ask;
    private readonly hole;
    private readonly before;
    private readonly after;
    private count;
    private hasBegun;
    private hasEnded;
    constructor(ask: Ask, hole: Hole, before: Place, after: Place);
    get missed(): Missed;
    frames(): AsyncGenerator<Fetched>;
    private ticks;
    /** The candle that showed the hole follows by itself. An earlier one that was corrected meanwhile is not among those that are fetched. */
    private candles;
}
export declare function warn(missed: Missed): void;
