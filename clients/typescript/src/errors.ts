/** What the service says when it refuses. */
export interface Refusal {
  code: string;
  message: string;
  status: number;
  field?: string;
  allowed?: unknown[];
  request_id?: string;
  retry_after?: number;
}

/** A request was refused. */
export class ApiError extends Error {
  readonly code: string;
  readonly status: number;

  constructor(
    readonly refusal: Refusal,
    /** Seconds after which the same request would succeed. */
    readonly retryAfter: number | undefined,
  ) {
    super(refusal.message);
    this.name = "ApiError";
    this.code = refusal.code;
    this.status = refusal.status;
  }
}

/** A stream ended, and connecting again would not help. */
export class StreamError extends Error {
  readonly code: string;

  constructor(readonly refusal: Refusal) {
    super(refusal.message);
    this.name = "StreamError";
    this.code = refusal.code;
  }
}

/** A walk over pages stopped before its end: the next page was asked for again and again in vain. What came is good; with `cursor` another walk goes on after it. */
export class WalkInterrupted extends Error {
  constructor(
    attempts: number,
    readonly cursor: string | undefined,
    cause: unknown,
  ) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`The next page could not be had in ${attempts} attempts: ${why}. What came before is good: go on after it with the cursor of this error.`, { cause });
    this.name = "WalkInterrupted";
  }
}
