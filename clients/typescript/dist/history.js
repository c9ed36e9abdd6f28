import { WalkInterrupted } from "./errors.js";
import { insisting, waitBeforeAgain, waitBeforeGoingOn } from "./waiting.js";
/** Closed candles, oldest first. Each iteration starts again; pages are not kept after they have been read. */
export class History {
    ask;
    cursor;
    retries;
    constructor(ask, cursor, retries) {
        this.ask = ask;
        this.cursor = cursor;
        this.retries = retries;
    }
    async *[Symbol.asyncIterator]() {
        for await (const page of this.pages())
            yield* page.candles;
    }
    async *pages() {
        let next = this.cursor;
        for (let isFirst = true;; isFirst = false) {
            const page = await this.page(next, isFirst);
            yield page;
            if (page.next === null)
                return;
            next = page.next;
        }
    }
    async page(cursor, isFirst) {
        const { ohlcv, next } = await insisting(() => this.ask(cursor), (failure, attempt) => (isFirst ? this.waitForFirst(failure, attempt) : this.waitForNext(failure, attempt, cursor)));
        return { candles: ohlcv, next };
    }
    waitForFirst(failure, attempt) {
        return attempt < this.retries.first ? waitBeforeAgain(failure, attempt) : undefined;
    }
    waitForNext(failure, attempt, cursor) {
        const waitS = waitBeforeGoingOn(failure, attempt);
        if (waitS !== undefined && attempt >= this.retries.later)
            throw new WalkInterrupted(attempt + 1, cursor, failure);
        return waitS;
    }
}
/** As a query has it. */
export function plain({ start, end }) {
    return { start: written(start), end: written(end) };
}
function written(moment) {
    if (moment instanceof Date)
        return moment.toISOString();
    return typeof moment === "string" ? withZone(moment) : moment;
}
function withZone(text) {
    if (/^\d{4}-\d\d-\d\d$/.test(text))
        return `${text}T00:00Z`;
    return /^\d{4}-\d\d-\d\dT[\d:.]+$/.test(text) ? `${text}Z` : text;
}
