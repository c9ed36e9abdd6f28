// What every feed shows besides its items: loading, empty, away or not live.
import { Failure } from "../api.js";
import { clock, write } from "../format.js";

export class FeedPane {
  #renewedMs = null;

  /** `what` names the items, such as Signals; `nothing` is the text for an empty list. */
  constructor(pane, { what, nothing }) {
    const part = (name) => pane.querySelector(`[data-part=${name}]`);
    Object.assign(this, { what, nothing, list: part("list"), message: part("message"), note: part("note") });
  }

  get focused() {
    return this.list.contains(document.activeElement) ? document.activeElement : null;
  }

  show(items) {
    this.#renewedMs = Date.now();
    this.list.removeAttribute("aria-busy");
    this.list.replaceChildren(...items);
    const isComing = document.getElementById("coming") !== null;
    write(this.message, items.length ? "" : isComing ? `${this.what} of the demo are being made.` : this.nothing);
  }

  /** Known items stay, with their time. */
  fail(error) {
    const why = error instanceof Failure ? error.message : "The service is not responding.";
    if (this.#renewedMs) return this.tell(`Not updated since ${clock(this.#renewedMs)}. Trying again…`);
    this.list.removeAttribute("aria-busy");
    this.list.replaceChildren();
    write(this.message, `${this.what} could not be loaded. ${why} Trying again…`);
    return undefined;
  }

  tell(words) {
    write(this.note, words);
  }
}

/** Never broken in the middle. */
export function phrase(text, name = "") {
  return Object.assign(document.createElement("span"), { className: `phrase ${name}`.trim(), textContent: text });
}
