/** Asks until it is answered, or until waiting would not help: `waitS` says how long, or undefined. */
export declare function insisting<T>(ask: () => Promise<T>, waitS: (failure: unknown, attempt: number) => number | undefined): Promise<T>;
export declare function waitBeforeAgain(failure: unknown, attempt: number): number | undefined;
/** The same of something long, which is also worth going on with once what stands in front of the service reaches it again. */
export declare function waitBeforeGoingOn(failure: unknown, attempt: number): number | undefined;
