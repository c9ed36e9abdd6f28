import type { Timeframe } from "./history.js";
import { type Ask, type Missed } from "./missed.js";
import { State } from "./state.js";
export interface StreamOptions {
    symbols?: string[];
    features?: string[];
    events?: string[];
    /** Of candles, for all symbols. By default, 1m. */
    timeframes?: Timeframe[];
    /** Only news of these categories. */
    categories?: string[];
    /** Receives every hole in the stream. By default, a warning on the console. */
    onMissed?: (missed: Missed) => void;
    /** Receives notices: `stale` when prices stop and `live` when they continue, `deactivated` for symbols that are no longer offered and `activated` when they are again, `new_series` when real prices replace simulated ones or vice versa, and `restarting`. */
    onNotice?: (notice: Notice) => void;
    /** Starts after this place: the id of a signal, "closed:" and the id of a closed one, or the id of a news item as a string. By default, from now on. */
    since?: string;
    /** Goes on from its places, and moves them. */
    state?: State;
    /** Of prices and candles: fetches missing frames over REST. They come before the one that showed that they are missing. */
    fill?: boolean;
}
export interface Notice {
    type: "notice";
    code: "restarting" | "stale" | "live" | "deactivated" | "activated" | "new_series";
    symbols?: string[];
    time: number;
}
/** How a stream reaches the service. */
export interface Reach {
    url: string;
    apiKey: string;
    Socket: typeof WebSocket;
    ask: Ask;
    /** How often a refused stream is asked for again. */
    tries: number;
}
/** Frames as they arrive. After a lost connection, the stream reconnects and continues where it was. */
export declare class Stream<F> implements AsyncIterable<F> {
    private readonly name;
    private readonly reach;
    private readonly options;
    private waiting;
    private wake;
    private failure;
    private socket;
    private timer;
    private refusal;
    private readonly state;
    /** Of what was received; the state has those of what was read. */
    private readonly places;
    private epoch;
    /** Keys with a place that this connection could not resume from. */
    private lostKeys;
    /** Keys of which no frame has come since the reply. */
    private fresh;
    private since;
    private waitMs;
    private failures;
    private refusals;
    private wasLive;
    private answeredAt;
    private isClosed;
    constructor(name: string, reach: Reach, options: StreamOptions);
    [Symbol.asyncIterator](): AsyncGenerator<F>;
    private read;
    /** The frames that are missing, and then the report. */
    private fill;
    close(): void;
    private open;
    private subscribe;
    private resume;
    /** A state may have places of symbols that are not followed this time. */
    private wants;
    private hear;
    private takeReply;
    private takeGap;
    private lose;
    private miss;
    private passOver;
    private takeError;
    private take;
    private takeNumbered;
    /** What was received moves the place now; when it has been read, the state's. */
    private push;
    private fail;
    private end;
    private lost;
    private expectSoon;
}
