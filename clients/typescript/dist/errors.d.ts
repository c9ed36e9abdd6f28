/** An error as the service sends it. */
export interface Refusal {
    code: string;
    message: string;
    status: number;
    field?: string;
    allowed?: unknown[];
    request_id?: string;
    retry_after?: number;
}
/** The base of all errors of this client. */
export declare class TickwireError extends Error {
    constructor(message: string, options?: ErrorOptions);
}
/** The service rejected a request. */
export declare class ApiError extends TickwireError {
    /** The error as the service sent it. */
    readonly refusal: Refusal;
    /** Seconds after which the same request would succeed. */
    readonly retryAfter: number | undefined;
    readonly code: string;
    readonly status: number;
    /** The parameter that is wrong, and its allowed values where they can be listed. */
    readonly field: string | undefined;
    readonly allowed: unknown[] | undefined;
    /** Name it when you report a problem. */
    readonly requestId: string | undefined;
    constructor(
    /** The error as the service sent it. */
    refusal: Refusal, 
    /** Seconds after which the same request would succeed. */
    retryAfter: number | undefined);
}
/** The service could not be reached, or did not answer in time. */
export declare class ServiceUnreachable extends TickwireError {
    constructor(url: string, cause: unknown);
}
/** A file of places is damaged, or of another kind or version. */
export declare class StateError extends TickwireError {
    constructor(message: string, options?: ErrorOptions);
}
/** A stream ended, and reconnecting would not help, or was refused again and again. */
export declare class StreamError extends TickwireError {
    readonly refusal: Refusal;
    readonly code: string;
    readonly status: number;
    constructor(refusal: Refusal);
}
/** A walk stopped before its end, because repeated requests for the next page failed. The pages received are complete; a walk with `cursor` continues after them. */
export declare class WalkInterrupted extends TickwireError {
    readonly cursor: string | undefined;
    constructor(attempts: number, cursor: string | undefined, cause: unknown);
}
