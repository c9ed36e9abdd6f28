const LEFT = /;\s*r=(\d{1,9})\s*;\s*t=(\d{1,9})\b/;
const LONGEST_WAIT_S = 60;
/**
 * One pacing for all requests of a client: they wait for room in the account's window, instead of failing. The service's clock is never
 * compared with this machine's: `t` counts from the answer.
 */
export class Pacing {
    /** Not known before the first answer. */
    isLimited;
    room = 0;
    begun = 0;
    inFlight = 0;
    readyAt = 0;
    /** Only the first in the line looks for room. */
    line = Promise.resolve();
    onEnd;
    async send(ask) {
        const turn = this.line.then(() => this.begin());
        this.line = turn;
        const number = await turn;
        let answer;
        try {
            return (answer = await ask());
        }
        finally {
            this.end(number, answer);
            this.onEnd?.();
        }
    }
    /** The number of the request if it is alone: then its answer counts all before it. */
    async begin() {
        while (this.isLimited !== false && !this.room && this.inFlight)
            await new Promise((done) => (this.onEnd = done));
        if (this.isLimited && !this.room) {
            const waitMs = this.readyAt - performance.now();
            if (waitMs > 0)
                await new Promise((done) => setTimeout(done, waitMs));
        }
        this.room = Math.max(0, this.room - 1);
        this.begun += 1;
        this.inFlight += 1;
        return this.inFlight === 1 ? this.begun : undefined;
    }
    end(number, answer) {
        this.inFlight -= 1;
        const found = LEFT.exec(answer?.headers.get("RateLimit") ?? "");
        if (found)
            this.learn(number, Number(found[1]), Number(found[2]));
        else if (!this.isLimited)
            this.isLimited = false;
        else if (!answer)
            this.room += 1;
    }
    learn(number, left, waitS) {
        // It may count neither those on their way nor, if it is late, those that were answered before it.
        const room = Math.max(0, left - (number === undefined ? this.inFlight : this.begun - number));
        this.room = number === undefined && this.isLimited ? Math.min(this.room, room) : room;
        this.isLimited = true;
        if (!left)
            this.readyAt = Math.max(this.readyAt, performance.now() + 1000 * Math.min(waitS, LONGEST_WAIT_S));
    }
}
