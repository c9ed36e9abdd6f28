import { WalkInterrupted } from "./errors.js";
import type { components } from "../schema.js";
import { insisting, waitBeforeAgain, waitBeforeGoingOn } from "./waiting.js";

/** A Date, an ISO 8601 text (UTC unless it has a zone), or milliseconds since the epoch. */
export type Moment = Date | string | number;

type Answer = components["schemas"]["History"];

export type Timeframe = Answer["timeframe"];

export type Candle = components["schemas"]["Candle"];

export type HistoryAnswer = Pick<Answer, "ohlcv" | "next">;

export interface Span {
  /** The first time to include. By default, the first stored candle. */
  start?: Moment;
  /** The end, which is excluded. By default, now. */
  end?: Moment;
}

export interface HistoryOptions extends Span {
  /** The number of candles in a page. */
  limit?: number;
  /** Continues after a page of the same walk. */
  cursor?: string;
}

export interface Page {
  candles: Candle[];
  /** The cursor of the next page; null at the end. */
  next: string | null;
}

export interface Retries {
  /** Of the first page. */
  first: number;
  /** Of each later one, as much would be lost. */
  later: number;
}

/** Closed candles, oldest first. Each iteration starts again; pages are not kept after they have been read. */
export class History implements AsyncIterable<Candle> {
  constructor(
    private readonly ask: (cursor: string | undefined) => Promise<HistoryAnswer>,
    private readonly cursor: string | undefined,
    private readonly retries: Retries,
  ) {}

  async *[Symbol.asyncIterator](): AsyncGenerator<Candle> {
    for await (const page of this.pages()) yield* page.candles;
  }

  async *pages(): AsyncGenerator<Page> {
    let next = this.cursor;
    for (let isFirst = true; ; isFirst = false) {
      const page: Page = await this.page(next, isFirst);
      yield page;
      if (page.next === null) return;
      next = page.next;
    }
  }

  private async page(cursor: string | undefined, isFirst: boolean): Promise<Page> {
    const { ohlcv, next } = await insisting(
      () => this.ask(cursor),
      (failure, attempt) => (isFirst ? this.waitForFirst(failure, attempt) : this.waitForNext(failure, attempt, cursor)),
    );
    return { candles: ohlcv, next };
  }

  private waitForFirst(failure: unknown, attempt: number): number | undefined {
    return attempt < this.retries.first ? waitBeforeAgain(failure, attempt) : undefined;
  }

  private waitForNext(failure: unknown, attempt: number, cursor: string | undefined): number | undefined {
    const waitS = waitBeforeGoingOn(failure, attempt);
    if (waitS !== undefined && attempt >= this.retries.later) throw new WalkInterrupted(attempt + 1, cursor, failure);
    return waitS;
  }
}

/** As a query has it. */
export function plain({ start, end }: Span): Record<string, string | number | undefined> {
  return { start: written(start), end: written(end) };
}

function written(moment: Moment | undefined): string | number | undefined {
  if (moment instanceof Date) return moment.toISOString();
  return typeof moment === "string" ? withZone(moment) : moment;
}

function withZone(text: string): string {
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return `${text}T00:00Z`;
  return /^\d{4}-\d\d-\d\dT[\d:.]+$/.test(text) ? `${text}Z` : text;
}
