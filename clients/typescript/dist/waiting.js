import { ApiError } from "./errors.js";
const LONGEST_WAIT_S = 60;
const LONGEST_BACKOFF_S = 15;
const PASSING = ["rate_limit_exceeded", "overloaded", "quote_unavailable"];
// What stands in front of a service says while that starts again.
const UNREACHED = [502, 503, 504];
/** Asks until it is answered, or until waiting would not help: `waitS` says how long, or undefined. */
export async function insisting(ask, waitS) {
    for (let attempt = 0;; attempt++) {
        try {
            return await ask();
        }
        catch (failure) {
            const seconds = waitS(failure, attempt);
            if (seconds === undefined)
                throw failure;
            await new Promise((done) => setTimeout(done, 1000 * seconds));
        }
    }
}
export function waitBeforeAgain(failure, attempt) {
    if (!(failure instanceof ApiError))
        return 0.25 * 2 ** attempt;
    return PASSING.includes(failure.code) ? bearable(failure.retryAfter) : undefined;
}
/** The same of something long, which is also worth going on with once what stands in front of the service reaches it again. */
export function waitBeforeGoingOn(failure, attempt) {
    const backoffS = Math.min(LONGEST_BACKOFF_S, 0.25 * 2 ** attempt);
    if (!(failure instanceof ApiError))
        return backoffS;
    const { status, code, retryAfter } = failure;
    if (retryAfter === undefined && UNREACHED.includes(status) && ["", "overloaded"].includes(code))
        return backoffS;
    return status === 429 || status === 503 ? bearable(retryAfter) : undefined;
}
function bearable(waitS) {
    return waitS !== undefined && waitS <= LONGEST_WAIT_S ? waitS : undefined;
}
