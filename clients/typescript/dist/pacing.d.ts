/**
 * One pacing for all requests of a client: they wait for room in the account's window, instead of failing. The service's clock is never
 * compared with this machine's: `t` counts from the answer.
 */
export declare class Pacing {
    /** Not known before the first answer. */
    private isLimited;
    private room;
    private begun;
    private inFlight;
    private readyAt;
    /** Only the first in the line looks for room. */
    private line;
    private onEnd;
    send(ask: () => Promise<Response>): Promise<Response>;
    /** The number of the request if it is alone: then its answer counts all before it. */
    private begin;
    private end;
    private learn;
}
