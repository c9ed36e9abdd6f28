// The page by keyboard. Single keys are ignored while the user types, in a dialog, and with modifiers.
import { module, persist } from "../api.js";
import { keep, kept } from "../page/kept.js";

const WRITING = "input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]";
const OFF = "single-keys-off";
const STEPS = { ArrowDown: 1, ArrowUp: -1 };

/** The search is fetched once the user acts on the page, so that it works even if the service goes away later. Until it
 * is there, the field takes what is typed. */
export class PaletteOnDemand {
  #palette;

  constructor(dialog, about) {
    Object.assign(this, { dialog, about });
    for (const sign of ["pointermove", "touchstart", "keydown"]) addEventListener(sign, () => this.#fetch(), { once: true, passive: true });
  }

  async open(letters = "") {
    this.dialog.querySelector("input").value = letters;
    this.dialog.showModal();
    (await this.#fetch()).search();
  }

  #fetch() {
    return (this.#palette ??= persist(() => module(import.meta.resolve("./palette.js")), () => true).then(({ Palette }) => new Palette(this.dialog, this.about)));
  }
}

export class Shortcuts {
  constructor(dialog, { palette, watchlist }) {
    Object.assign(this, { dialog, palette, watchlist });
    for (const key of document.querySelectorAll("kbd")) key.textContent = named(key.textContent);
    const single = dialog.querySelector("input");
    single.checked = kept(OFF) !== "yes";
    single.addEventListener("change", () => keep(OFF, single.checked ? "no" : "yes"));
    this.single = single;
    dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
    // A click does not keep the arrow keys; keyboard users keep their focus.
    addEventListener("click", ({ target }) => target.name === "timeframe" && !target.matches(":focus-visible") && target.blur());
    // Before the panes receive a key, which may be switched off for them too.
    addEventListener("keydown", (event) => this.press(event), { capture: true });
  }

  show() {
    if (!this.dialog.open) this.dialog.showModal();
  }

  press(event) {
    const { key, altKey, ctrlKey, metaKey, isComposing, target } = event;
    if (isComposing || document.querySelector("dialog:modal")) return;
    if ((ctrlKey || metaKey) && !altKey && key.toLowerCase() === "k") {
      event.preventDefault();
      this.palette.open();
    } else if (!(altKey || ctrlKey || metaKey || (target.closest?.(WRITING) && !(key in STEPS && this.isFree(target))))) {
      this.pressAlone(event);
    }
  }

  pressAlone(event) {
    const { key, target } = event;
    if (!this.single.checked) {
      if (key.length === 1 && key !== " ") event.stopImmediatePropagation();
      return;
    }
    if (key === "?") this.show();
    else if (/^\p{L}$/u.test(key)) this.palette.open(key);
    else if (key in STEPS && this.isFree(target)) this.watchlist.step(STEPS[key]);
    else return;
    event.preventDefault();
  }

  /** Elsewhere arrows scroll, or choose among what they are within. */
  isFree(target) {
    return target === document.body || target.matches("button, summary") || this.watchlist.pane.contains(target);
  }
}

const isApple = /Mac|iP(hone|ad)/.test(navigator.platform);

/** As labelled on the keyboard. */
const named = (key) => (isApple ? key.replace("Ctrl", "⌘").replace("Alt", "⌥") : key);
