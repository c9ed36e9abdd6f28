// Symbol search: type a few letters, choose with the arrows, open with Enter.
import { signed } from "../format.js";

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
    // A click beside the panel is one on the dialog itself.
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

/** How well a few letters name an instrument, by its symbol or by its name, also with letters left out: those that are
 * meant, the likeliest first, each with the letters that were typed. */
export function matches(query, instruments) {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return instruments.map((instrument) => ({ instrument, inSymbol: [], inName: [] }));
  return instruments
    .map((instrument) => ({ instrument, ...match(wanted, instrument) }))
    .filter(({ cost }) => cost < Infinity)
    .sort((one, other) => one.cost - other.cost || (one.instrument.symbol < other.instrument.symbol ? -1 : 1));
}

function match(wanted, { symbol, name }) {
  const bySymbol = find(wanted, symbol.toLowerCase());
  const byName = find(wanted, name.toLowerCase());
  // People type symbols, so a name counts only if it fits clearly better.
  if (bySymbol.cost <= byName.cost + 5) return { cost: bySymbol.cost, inSymbol: bySymbol.at, inName: [] };
  return { cost: byName.cost + 5, inSymbol: [], inName: byName.at };
}

function find(wanted, text) {
  const run = (from) => Array.from(wanted, (_, at) => from + at);
  if (text.startsWith(wanted)) return { cost: text.length - wanted.length > 0 ? 1 : 0, at: run(0) };
  const word = text.search(new RegExp(`(?<![\\p{L}\\p{N}])${wanted.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}`, "u"));
  if (word >= 0) return { cost: 2, at: run(word) };
  const within = text.indexOf(wanted);
  return within >= 0 ? { cost: 8 + within / 100, at: run(within) } : scattered(wanted, text);
}

/** In order, with other letters between: the fewer, the better. */
function scattered(wanted, text) {
  const at = [];
  for (const letter of wanted) {
    const next = text.indexOf(letter, (at.at(-1) ?? -1) + 1);
    if (next < 0) return { cost: Infinity, at: [] };
    at.push(next);
  }
  const skipped = at.at(-1) - at[0] + 1 - at.length;
  return skipped > 2 * wanted.length + 2 ? { cost: Infinity, at: [] } : { cost: 20 + skipped, at };
}
