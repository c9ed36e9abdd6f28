// The fills of signals. The stream does not report them, so they are polled until each is there.
const AGAIN_MS = 2000;
const MOST_ASKED = 50;

export class Fills {
  #known = new Map();
  #waiting = new Set();
  #unfilled = new Set();
  #timer = 0;

  /** `changed` is called when more is known. */
  constructor(address, changed) {
    Object.assign(this, { address, changed });
  }

  isWaiting(id) {
    return this.#waiting.has(id);
  }

  isUnfilled(id) {
    return this.#unfilled.has(id);
  }

  /** 0 for a signal that was filled as it was published, or never; undefined as long as that is not known. */
  of(id) {
    return this.#known.get(id);
  }

  /** Of these signals; a later call replaces the ones before. */
  async ask(ids) {
    clearTimeout(this.#timer);
    const unknown = ids.filter((id) => !this.#known.has(id));
    const asked = unknown.slice(0, MOST_ASKED);
    if (!asked.length) return;
    const answer = await fetch(`${this.address}?ids=${asked}`);
    if (!answer.ok) return;
    const { fills, unfilled } = await answer.json();
    for (const id of unfilled) this.#unfilled.add(id);
    for (const id of asked) {
      if (fills[id] === null) this.#waiting.add(id);
      else this.#known.set(id, fills[id] ?? 0);
      if (this.#known.has(id)) this.#waiting.delete(id);
    }
    this.changed();
    clearTimeout(this.#timer);
    if (unknown.some((id) => !this.#known.has(id))) this.#timer = setTimeout(() => this.ask(unknown).catch(() => {}), AGAIN_MS);
  }
}
