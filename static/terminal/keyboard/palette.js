// Symbol search: type a few letters, choose with the arrows, open with Enter.
import { signed } from "../format.js";
import { matches } from "./match.js";

const MOST = 50;

export class Palette {
  /** `rows` are those of the watchlist in its order; `choose` shows one. */
  constructor(dialog, { rows, choose }) {
    Object.assign(this, { dialog, rows, choose });
    this.input = dialog.querySelector("input");
    this.list = dialog.querySelector("[role=listbox]");
    this.none = dialog.querySelector("[role=status]");
    this.input.addEventListener("input", () => this.search());
    dialog.addEventListener("keydown", (event) => this.press(event));
    this.list.addEventListener("click", ({ target }) => this.take(target.closest("[role=option]")));
    this.list.addEventListener("pointermove", ({ target }) => this.point(target.closest("[role=option]")));
    // What is beside the panel is the dialog itself.
    dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  }

  search() {
    const found = matches(this.input.value, this.rows()).slice(0, MOST);
    this.list.replaceChildren(...found.map((match, at) => option(match, at)));
    this.none.textContent = found.length ? "" : `No instrument matches “${this.input.value.trim()}”.`;
    this.list.scrollTop = 0;
    this.point(this.list.firstElementChild);
  }

  point(option) {
    if (option === this.pointed && option?.isConnected) return;
    this.pointed?.setAttribute("aria-selected", "false");
    this.pointed = option;
    option?.setAttribute("aria-selected", "true");
    if (option) this.input.setAttribute("aria-activedescendant", option.id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  press(event) {
    const { key, isComposing } = event;
    if (isComposing) return;
    const options = [...this.list.children];
    const at = options.indexOf(this.pointed);
    const next = { ArrowDown: options[at + 1] ?? options[0], ArrowUp: options.at(at - 1), PageDown: options[Math.min(at + 6, options.length - 1)], PageUp: options[Math.max(at - 6, 0)] };
    if (key === "Enter") this.take(this.pointed);
    else if (key in next) {
      this.point(next[key]);
      next[key]?.scrollIntoView({ block: "nearest" });
    } else return;
    event.preventDefault();
  }

  take(option) {
    if (!option) return;
    // Closed first, which gives the focus back to where it was.
    this.dialog.close();
    this.choose(option.dataset.symbol);
  }
}

function option({ instrument, inSymbol, inName }, at) {
  const { symbol, name, state, change } = instrument;
  const item = document.createElement("li");
  Object.assign(item, { id: `palette-${at}`, role: "option", ariaSelected: "false" });
  item.dataset.symbol = symbol;
  const moved = state === "open" && change !== null && change !== undefined;
  const end = part("end num", moved ? `${signed(change, 2)}%` : state === "open" ? "" : state);
  if (moved) end.classList.add(change < 0 ? "down" : "up");
  item.append(marked("symbol", symbol, inSymbol), marked("of", name, inName), end);
  return item;
}

function part(className, textContent) {
  return Object.assign(document.createElement("span"), { className, textContent });
}

function marked(className, text, at) {
  const whole = part(className, "");
  for (const [index, letter] of Array.from(text, (each, index) => [index, each])) {
    whole.append(at.includes(index) ? Object.assign(document.createElement("mark"), { textContent: letter }) : letter);
  }
  whole.normalize();
  return whole;
}
