import { ServiceUnreachable, StreamError } from "./errors.js";
import { Fill, warn } from "./missed.js";
import { opened } from "./runtime.js";
import { State } from "./state.js";
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 15_000;
// What breaks off sooner than this after its reply has not come back: the waits go on growing.
const STEADY_MS = 10_000;
// The service says something at least every ten seconds.
const SILENCE_MS = 20_000;
// A browser's socket takes whatever comes: who reads no more would fill its memory.
const MOST_WAITING = 100_000;
const SILENT = new Set(["heartbeat", "pong", "unsubscribed", "subscriptions"]);
/** Frames as they arrive. After a lost connection, the stream reconnects and continues where it was. */
export class Stream {
    name;
    reach;
    options;
    waiting = [];
    wake;
    failure;
    socket;
    timer;
    refusal;
    state;
    /** Of what was received; the state has those of what was read. */
    places;
    epoch;
    /** Keys with a place that this connection could not resume from. */
    lostKeys = new Set();
    /** Keys of which no frame has come since the reply. */
    fresh = new Set();
    since;
    waitMs = FIRST_WAIT_MS;
    failures = 0;
    refusals = 0;
    wasLive = false;
    answeredAt;
    isClosed = false;
    constructor(name, reach, options) {
        this.name = name;
        this.reach = reach;
        this.options = options;
        this.state = options.state ?? new State();
        if (options.since !== undefined)
            this.state.moveSince(name, options.since);
        this.since = this.state.since(name);
        this.places = new Map([...this.state.places(name)].filter(([key]) => this.wants(key)));
        this.open();
    }
    [Symbol.asyncIterator]() {
        const frames = this.read();
        const end = frames.return.bind(frames);
        // A generator that waits for a frame hears of its end only after that frame.
        frames.return = (value) => {
            this.close();
            return end(value);
        };
        return frames;
    }
    async *read() {
        try {
            for (;;) {
                for (let next = this.waiting.shift(); next; next = this.waiting.shift()) {
                    if (next.hole)
                        yield* this.fill(next.hole);
                    next.settle();
                    if (next.frame !== undefined)
                        yield next.frame;
                }
                if (this.failure)
                    throw this.failure;
                if (this.isClosed)
                    return;
                if (!this.waiting.length)
                    await new Promise((done) => (this.wake = done));
            }
        }
        finally {
            this.close();
        }
    }
    /** The frames that are missing, and then the report. */
    async *fill(hole) {
        let { missed } = hole;
        if (this.options.fill && hole.before && hole.after && ["market", "candles"].includes(this.name)) {
            const fill = new Fill(this.reach.ask, hole, hole.before, hole.after);
            try {
                for await (const { frame, place } of fill.frames()) {
                    this.state.move(this.name, hole.key, place);
                    yield frame;
                }
            }
            catch (failure) {
                console.warn(`Missed frames of ${hole.key} could not be fetched: ${String(failure)}`);
            }
            missed = fill.missed;
        }
        (this.options.onMissed ?? warn)(missed);
    }
    close() {
        this.isClosed = true;
        clearTimeout(this.timer);
        this.socket?.close();
        this.wake?.();
    }
    open() {
        const { Socket, url } = this.reach;
        const socket = (this.socket = opened(Socket, url));
        this.refusal = undefined;
        this.answeredAt = undefined;
        socket.onopen = () => socket.send(JSON.stringify(this.subscribe()));
        socket.onmessage = ({ data }) => socket === this.socket && this.hear(JSON.parse(String(data)));
        socket.onclose = () => socket === this.socket && this.lost();
        // Node 20 says no more than this of a connection that cannot be made.
        socket.onerror = () => socket === this.socket && socket.readyState !== socket.OPEN && this.lost();
        this.expectSoon();
    }
    subscribe() {
        const { symbols = [], features = [], events, timeframes, categories } = this.options;
        return {
            action: "subscribe",
            api_key: this.reach.apiKey,
            features: [...new Set(["seq", "heartbeat", ...features])],
            ...(symbols.length && { symbols }),
            ...(events && { events }),
            ...(timeframes && { timeframes }),
            ...(categories?.length && { categories }),
            ...(this.since !== undefined && { since: this.since }),
            ...this.resume(),
        };
    }
    resume() {
        const places = [...this.places];
        const epoch = this.epoch ?? places.reduce((newest, [, each]) => (newest && newest.time > each.time ? newest : each), undefined)?.epoch;
        const positions = places.filter(([, place]) => place.epoch === epoch).map(([key, { seq }]) => [key, seq]);
        this.lostKeys = new Set(places.filter(([, place]) => place.epoch !== epoch).map(([key]) => key));
        return positions.length ? { resume: { epoch, positions: Object.fromEntries(positions) } } : {};
    }
    /** A state may have places of symbols that are not followed this time. */
    wants(key) {
        const [symbol, timeframe] = key.split("/");
        const { symbols = [], timeframes = ["1m"] } = this.options;
        const isNamed = !symbols.length || symbols.some((each) => each.toUpperCase() === symbol);
        return isNamed && (timeframe === undefined || timeframes.includes(timeframe));
    }
    hear(frame) {
        if (this.isClosed)
            return;
        this.expectSoon();
        const { type } = frame;
        if (type === "subscribed")
            this.takeReply(frame);
        else if (type === "gap")
            this.takeGap(frame);
        else if (type === "error")
            this.takeError(frame);
        else if (type === "notice")
            this.options.onNotice?.(frame);
        else if (type === "conflated")
            this.passOver(frame);
        else if (!type || !SILENT.has(type))
            this.take(frame);
    }
    takeReply({ symbols, rejected, epoch, positions = {}, unrecovered = [], since, time }) {
        if (rejected.length && !symbols.length && !this.wasLive) {
            const unknown = rejected.map(({ symbol }) => symbol).join(", ");
            return this.fail({ code: "symbol_not_found", status: 404, message: `There is no such symbol: ${unknown}.` });
        }
        this.epoch = epoch;
        const lost = new Set([...unrecovered, ...[...this.lostKeys].filter((key) => key in positions)]);
        for (const [key, seq] of Object.entries(positions)) {
            if (this.places.has(key))
                continue;
            // Of 0 nothing was ever sent.
            if (this.wasLive && seq)
                lost.add(key);
            else
                this.push(key, { epoch: epoch ?? "", seq, time });
        }
        // Of signals and news the place is that of the reply until the first of them comes.
        if (epoch === undefined && this.wasLive && this.since === undefined)
            for (const symbol of symbols)
                lost.add(symbol);
        if (since !== undefined) {
            this.since = since;
            this.waiting.push({ settle: () => this.state.moveSince(this.name, since) });
        }
        this.fresh = new Set(Object.keys(positions));
        this.wasLive = true;
        this.refusals = 0;
        this.answeredAt = performance.now();
        this.lose([...lost].sort(), positions, time);
    }
    takeGap({ symbols, epoch, positions = {}, time }) {
        this.epoch = epoch;
        const isLost = (key) => symbols.includes("*") || symbols.includes(key.split("/")[0] ?? key);
        const keys = [...this.places.keys()].filter(isLost);
        // The numbers of the others go on.
        for (const [key, place] of this.places)
            if (!isLost(key))
                this.push(key, { ...place, epoch });
        this.lose(keys.length ? keys : symbols, positions, time);
    }
    lose(keys, positions, time) {
        for (const key of keys) {
            const seq = positions[key];
            this.miss(key, seq === undefined ? undefined : { epoch: this.epoch ?? "", seq, time }, time);
        }
        this.wake?.();
    }
    miss(key, after, endMs) {
        const before = this.places.get(key);
        const isOneNumbering = before !== undefined && before.epoch === after?.epoch;
        if (isOneNumbering && before.seq === after.seq)
            return;
        const [first, last] = isOneNumbering && before.seq < after.seq ? [before.seq + 1, after.seq] : [null, null];
        const [symbol = key, timeframe] = key.split("/");
        const times = { startMs: before?.time ?? null, endMs };
        const missed = { symbol, ...(timeframe && { timeframe }), first, last, ...times, filled: null, isFilled: false };
        this.push(key, after, { hole: { missed, key, before, after } });
    }
    passOver({ symbol, dropped }) {
        // What was left out is known to be: no hole.
        const place = this.places.get(symbol);
        if (place)
            this.push(symbol, { ...place, seq: place.seq + dropped });
    }
    takeError({ error, fatal, retry }) {
        if (fatal)
            this.refusal = { ...error, retry };
        else
            this.fail(error);
    }
    take(frame) {
        const { seq, id, symbol, timeframe, candle } = frame;
        if (id !== undefined) {
            const since = (this.since = frame.type === "signal.closed" ? `closed:${id}` : String(id));
            this.waiting.push({ frame: frame, settle: () => this.state.moveSince(this.name, since) });
        }
        else if (seq === undefined || symbol === undefined) {
            this.waiting.push({ frame: frame, settle: () => { } });
        }
        else {
            // Candles are numbered by symbol and timeframe: EURUSD/1m.
            const key = timeframe ? `${symbol}/${timeframe}` : symbol;
            this.takeNumbered(frame, key, seq, candle ? Date.parse(candle.time) : (frame.time ?? 0));
        }
        if (this.waiting.length > MOST_WAITING) {
            const message = `${MOST_WAITING} frames wait to be read. Read faster, or watch fewer symbols.`;
            return this.fail({ code: "slow_reader", status: 0, message });
        }
        this.wake?.();
    }
    takeNumbered(frame, key, seq, time) {
        const place = this.places.get(key);
        const isFirst = this.fresh.delete(key);
        const epoch = this.epoch ?? "";
        if (place && place.epoch === epoch && seq <= place.seq) {
            // What came twice is one frame; only a snapshot is of before.
            if (isFirst)
                this.push(key, { ...place, time }, { frame: { ...frame, snapshot: true } });
            return;
        }
        if (place && !(place.epoch === epoch && seq === place.seq + 1))
            this.miss(key, { epoch, seq: seq - 1, time }, time);
        this.push(key, { epoch, seq, time }, { frame: frame });
    }
    /** What was received moves the place now; when it has been read, the state's. */
    push(key, place, what = {}) {
        if (place)
            this.places.set(key, place);
        else
            this.places.delete(key);
        this.waiting.push({ ...what, settle: () => this.state.move(this.name, key, place) });
    }
    fail(refusal) {
        this.end(new StreamError(refusal));
    }
    end(failure) {
        this.failure = failure;
        this.close();
    }
    lost() {
        clearTimeout(this.timer);
        this.socket = undefined;
        if (this.isClosed)
            return;
        if (this.refusal && this.answeredAt === undefined)
            this.refusals += 1;
        if (this.refusal && (!this.refusal.retry || this.refusals > this.reach.tries))
            return this.fail(this.refusal);
        this.failures += 1;
        if (!this.wasLive && this.failures > this.reach.tries) {
            return this.end(new ServiceUnreachable(this.reach.url, new Error("the stream cannot be opened")));
        }
        const wasSteady = this.answeredAt !== undefined && performance.now() - this.answeredAt >= STEADY_MS;
        if (wasSteady)
            this.waitMs = FIRST_WAIT_MS;
        const waitMs = Math.max(this.waitMs * (0.5 + Math.random() / 2), 1000 * (this.refusal?.retry_after ?? 0));
        this.waitMs = Math.min(2 * this.waitMs, LONGEST_WAIT_MS);
        this.timer = setTimeout(() => this.open(), waitMs);
    }
    expectSoon() {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => {
            const silent = this.socket;
            this.lost();
            silent?.close();
        }, SILENCE_MS);
    }
}
