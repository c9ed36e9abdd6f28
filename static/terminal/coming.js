// The strip that says how far the demo's past is made. It goes away when all of it is there.
import { write } from "./format.js";

const POLL_MS = 1_500;

export class Coming {
  /** `made` is called with the symbols whose past is now complete, `complete` when all are. */
  constructor(strip, made, complete) {
    Object.assign(this, { strip, made, complete });
    this.unmade = strip.dataset.unmade.split(" ").filter(Boolean);
    this.timer = setInterval(() => document.hidden || this.look(), POLL_MS);
  }

  async look() {
    try {
      const answer = await fetch(this.strip.dataset.url, { signal: AbortSignal.timeout(15_000) });
      if (answer.ok) this.show(await answer.json());
    } catch (error) {
      console.warn(error.message);
    }
  }

  show(past) {
    const unmade = past?.unmade ?? [];
    const come = this.unmade.filter((symbol) => !unmade.includes(symbol));
    this.unmade = unmade;
    if (come.length) this.made(come);
    if (past) {
      write(this.strip, past.text);
    } else {
      clearInterval(this.timer);
      this.strip.remove();
      this.complete();
    }
  }
}
