/** The base of all errors of this client. */
export class TickwireError extends Error {
    constructor(message, options) {
        super(message, options);
        this.name = "TickwireError";
    }
}
/** The service rejected a request. */
export class ApiError extends TickwireError {
    refusal;
    retryAfter;
    code;
    status;
    /** The parameter that is wrong, and its allowed values where they can be listed. */
    field;
    allowed;
    /** Name it when you report a problem. */
    requestId;
    constructor(
    /** The error as the service sent it. */
    refusal, 
    /** Seconds after which the same request would succeed. */
    retryAfter) {
        super(refusal.message);
        this.refusal = refusal;
        this.retryAfter = retryAfter;
        this.name = "ApiError";
        this.code = refusal.code;
        this.status = refusal.status;
        this.field = refusal.field;
        this.allowed = refusal.allowed;
        this.requestId = refusal.request_id;
    }
}
/** The service could not be reached, or did not answer in time. */
export class ServiceUnreachable extends TickwireError {
    constructor(url, cause) {
        super(`The service could not be reached at ${url}: ${reason(cause)}. Check the address (the option url), and whether the service is running.`, { cause });
        this.name = "ServiceUnreachable";
    }
}
/** A file of places is damaged, or of another kind or version. */
export class StateError extends TickwireError {
    constructor(message, options) {
        super(message, options);
        this.name = "StateError";
    }
}
/** A stream ended, and reconnecting would not help, or was refused again and again. */
export class StreamError extends TickwireError {
    refusal;
    code;
    status;
    constructor(refusal) {
        super(refusal.message);
        this.refusal = refusal;
        this.name = "StreamError";
        this.code = refusal.code;
        this.status = refusal.status;
    }
}
/** A walk stopped before its end, because repeated requests for the next page failed. The pages received are complete; a walk with `cursor` continues after them. */
export class WalkInterrupted extends TickwireError {
    cursor;
    constructor(attempts, cursor, cause) {
        const why = cause instanceof Error ? cause.message : String(cause);
        super(`The next page could not be read in ${attempts} attempts: ${why}. All earlier pages were received: continue with the cursor of this error.`, { cause });
        this.cursor = cursor;
        this.name = "WalkInterrupted";
    }
}
/** `fetch` itself says only "fetch failed"; what failed is its cause. */
function reason(failure) {
    if (!(failure instanceof Error))
        return String(failure);
    if (failure.name === "TimeoutError")
        return "no answer in time";
    const { cause } = failure;
    return cause?.message || cause?.code || failure.message;
}
