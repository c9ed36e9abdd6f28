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
export class TickwireError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "TickwireError";
  }
}

/** The service rejected a request. */
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
    super(`The service could not be reached at ${url}: ${reason(cause)}. Check the address (the option url), and whether the service is running.`, { cause });
    this.name = "ServiceUnreachable";
  }
}

/** A file of places is damaged, or of another kind or version. */
export class StateError extends TickwireError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "StateError";
  }
}

/** A stream ended, and reconnecting would not help, or was refused again and again. */
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

/** A walk stopped before its end, because repeated requests for the next page failed. The pages received are complete; a walk with `cursor` continues after them. */
export class WalkInterrupted extends TickwireError {
  constructor(
    attempts: number,
    readonly cursor: string | undefined,
    cause: unknown,
  ) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`The next page could not be read in ${attempts} attempts: ${why}. All earlier pages were received: continue with the cursor of this error.`, { cause });
    this.name = "WalkInterrupted";
  }
}

/** `fetch` itself says only "fetch failed"; what failed is its cause. */
function reason(failure: unknown): string {
  if (!(failure instanceof Error)) return String(failure);
  if (failure.name === "TimeoutError") return "no answer in time";
  const { cause } = failure as { cause?: { code?: string; message?: string } };
  return cause?.message || cause?.code || failure.message;
}
