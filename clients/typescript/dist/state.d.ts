/** Of the last frame of a symbol, or of its candles of one timeframe. */
export interface Place {
    epoch: string;
    seq: number;
    /** Milliseconds since the epoch; of a candle, when it opened. */
    time: number;
}
/**
 * Where streams are: pass it to `watch`, `orderFlow` and `follow…`. It moves with each frame that your program receives. One state serves
 * one stream of each kind.
 */
export declare class State {
    private readonly streams;
    private saving;
    /** A new one if there is no such file. Throws a StateError if the file is damaged or is not a state. */
    static load(path: string): Promise<State>;
    /** Where there are no files: from the text that `JSON.stringify(state)` made. */
    static from(text: string, name?: string): State;
    /** Atomically: a program that is killed meanwhile leaves the old file whole. */
    save(path: string): Promise<void>;
    places(stream: string): Map<string, Place>;
    move(stream: string, key: string, place: Place | undefined): void;
    since(stream: string): string | undefined;
    moveSince(stream: string, since: string): void;
    toJSON(): object;
    private known;
}
