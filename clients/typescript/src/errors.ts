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

/** What every error of this client is. */
export class TickwireError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "TickwireError";
  }
}

/** A request was refused. */
export class ApiError extends TickwireError {
  readonly code: string;
  readonly status: number;
  /** The parameter that is wrong, and its allowed values where they can be listed. */
  readonly field: string | undefined;
  readonly allowed: unknown[] | undefined;
  /** Name it when you report a problem. */
  readonly requestId: string | undefined;

  constructor(
    /** The error as the service sent it. */
    readonly refusal: Refusal,
    /** Seconds after which the same request would succeed. */
    readonly retryAfter: number | undefined,
  ) {
    super(refusal.message);
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
  constructor(url: string, cause: unknown) {
    super(`The service could not be reached at ${url}: ${reason(cause)}`, { cause });
    this.name = "ServiceUnreachable";
  }
}

/** A stream ended, and connecting again would not help. */
export class StreamError extends TickwireError {
  readonly code: string;
  readonly status: number;

  constructor(readonly refusal: Refusal) {
    super(refusal.message);
    this.name = "StreamError";
    this.code = refusal.code;
    this.status = refusal.status;
  }
}

/** A walk over pages stopped before its end: the next page was asked for again and again in vain. What came is good; with `cursor` another walk goes on after it. */
export class WalkInterrupted extends TickwireError {
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

/** `fetch` itself says only "fetch failed"; what failed is its cause. */
function reason(failure: unknown): string {
  if (!(failure instanceof Error)) return String(failure);
  if (failure.name === "TimeoutError") return "no answer in time.";
  const { cause } = failure as { cause?: { code?: string; message?: string } };
  return cause?.message || cause?.code || failure.message;
}
