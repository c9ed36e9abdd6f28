const LONGEST_PAGE = 10_000;
// What a frame says stands in the answers of every process by then.
const AGREED_AFTER_MS = 1000;
const STEPS_MS = {
    "1m": 60_000, "5m": 300_000, "15m": 900_000, "1h": 3_600_000, "4h": 14_400_000, "1d": 86_400_000,
};
/** What was missed of one hole, as far as it was fetched. */
export class Fill {
    ask;
    hole;
    before;
    after;
    count = 0;
    hasBegun = false;
    hasEnded = false;
    constructor(ask, hole, before, after) {
        this.ask = ask;
        this.hole = hole;
        this.before = before;
        this.after = after;
    }
    get missed() {
        const { first, last } = this.hole.missed;
        const isWhole = first === null || last === null ? this.hasBegun : this.count > last - first;
        return { ...this.hole.missed, filled: this.count, isFilled: this.hasEnded && isWhole };
    }
    async *frames() {
        for await (const fetched of this.hole.missed.timeframe ? this.candles(this.hole.missed.timeframe) : this.ticks()) {
            this.count += 1;
            yield fetched;
        }
    }
    async *ticks() {
        const { before, after } = this;
        const { symbol } = this.hole.missed;
        const path = `/api/market/${encodeURIComponent(symbol)}/ticks`;
        // The last number of each epoch: nothing is taken twice.
        const seqs = new Map([[before.epoch, before.seq]]);
        let came = before.time;
        // A process may know a frame a moment after another one has sent it: its end is asked for twice.
        for (let pass = 0; pass < 2 && !this.hasEnded; pass++) {
            if (pass)
                await new Promise((done) => setTimeout(done, AGREED_AFTER_MS));
            // The end is known by its number; the time of a tick may be later than that of the reply after it.
            const start = came;
            let cursor;
            while (cursor !== null && !this.hasEnded) {
                const page = (await this.ask(path, { start, limit: LONGEST_PAGE, cursor }));
                const { epoch } = page;
                const last = epoch === after.epoch ? after.seq : Infinity;
                // Between two numbers of one epoch there is no other one.
                if (last === Infinity && before.epoch === after.epoch)
                    page.items = [];
                for (const { timestamp, seq, bid, ask, spread, volume } of page.items) {
                    this.hasBegun ||= epoch === before.epoch && seq <= before.seq;
                    this.hasEnded ||= seq >= last;
                    if (seq <= (seqs.get(epoch) ?? 0) || seq > last)
                        continue;
                    seqs.set(epoch, seq);
                    came = Date.parse(timestamp);
                    yield { frame: { symbol, bid, ask, spread, time: came, volume, seq }, place: { epoch, seq, time: came } };
                }
                cursor = page.next;
                this.hasEnded ||= after.seq === 0 && cursor === null;
            }
        }
    }
    /** The candle that showed the hole follows by itself. An earlier one that was corrected meanwhile is not among those that are fetched. */
    async *candles(timeframe) {
        const { symbol, endMs } = this.hole.missed;
        const path = `/api/market/${encodeURIComponent(symbol)}/history`;
        const start = this.before.time + 1;
        this.hasBegun = true;
        for (let cursor = undefined; endMs > start && cursor !== null;) {
            const page = (await this.ask(path, { timeframe, start, end: endMs, limit: LONGEST_PAGE, cursor }));
            for (const candle of page.ohlcv) {
                const opened = Date.parse(candle.time);
                const frame = { symbol, timeframe, candle, closed: true, time: opened + (STEPS_MS[timeframe] ?? 0) };
                yield { frame, place: { ...this.before, time: opened } };
            }
            cursor = page.next;
            this.hasEnded = cursor === null;
        }
    }
}
export function warn(missed) {
    const { symbol, timeframe, first, last, startMs, endMs, filled, isFilled } = missed;
    if (isFilled)
        return;
    const what = timeframe ? `${symbol}/${timeframe}` : symbol;
    const numbers = first === null ? "of unknown numbers" : `${first} to ${last}`;
    const start = startMs === null ? "the beginning" : new Date(startMs).toISOString();
    const fetched = filled === null ? "" : `, ${filled} of them fetched`;
    console.warn(`Frames were missed. ${what}: ${numbers}, from ${start} to ${new Date(endMs).toISOString()}${fetched}`);
}
