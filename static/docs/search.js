// The search: one list of passages, loaded once, so that it works without a connection from then on.
const MOST = 12;
const AROUND = 60;
const LONGEST = 240;
// They say nothing of what is looked for, unless nothing else is typed.
const STOP_WORDS = new Set(
  ("a an the my me i we our you your it its this that is are be was do does did can could should would will how what which when " +
    "where why who and or of to in on at by for from with without after before if as into about there").split(" "),
);
// Pages for callers of the API come before those for operators and developers.
const LESS_FOR_SECTION = { Operate: 30, Project: 30, Guides: 6 };

export function startSearch(dialog) {
  const search = new Search(dialog);
  for (const button of document.querySelectorAll("[data-search]")) button.addEventListener("click", () => search.open());
  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]")?.checkVisibility();
    const isSlash = event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey;
    const isK = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
    if (!isSlash && !isK) return;
    event.preventDefault();
    search.open();
  });
  requestIdleCallback(() => search.load().catch(() => {}));
}

class Search {
  #dialog;
  #input;
  #list;
  #status;
  #passages = null;
  #loading = null;
  #chosen = 0;

  constructor(dialog) {
    this.#dialog = dialog;
    this.#input = dialog.querySelector("input");
    this.#list = dialog.querySelector("ul");
    this.#status = dialog.querySelector("[role=status]");
    this.#input.addEventListener("input", () => this.#find());
    this.#input.addEventListener("keydown", (event) => this.#key(event));
    this.#list.addEventListener("click", ({ target }) => this.#go(target.closest("li")));
    dialog.querySelector("[data-close]").addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  }

  /** Kept for as long as the page lives; a failure is tried again when the search is opened. */
  async load() {
    this.#loading ??= fetch(this.#dialog.dataset.index)
      .then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(`${answer.status}`))))
      .catch((error) => {
        this.#loading = null;
        throw error;
      });
    this.#passages ??= (await this.#loading).map(prepare);
  }

  async open() {
    document.querySelector(":popover-open")?.hidePopover();
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#input.select();
    try {
      await this.load();
      this.#find();
    } catch {
      this.#say("The search could not be loaded. Check your connection and try again.");
    }
  }

  #find() {
    if (!this.#passages) return;
    const typed = this.#input.value.toLowerCase().trim();
    const { found, mark, isPartial, words } = lookUp(this.#passages, wordsOf(typed), typed);
    this.#list.replaceChildren(...found.map((passage, number) => row(passage, words, number, mark)));
    this.#list.hidden = !found.length;
    this.#input.setAttribute("aria-expanded", found.length > 0);
    this.#choose(0);
    if (!words.length) this.#say("Search every guide, endpoint, stream, field and error code.");
    else if (isPartial && found.length) this.#say("Nothing matches every word. These come closest.");
    else this.#say(found.length ? "" : `Nothing matches “${this.#input.value.trim()}”.`);
  }

  #say(text) {
    this.#status.textContent = text;
  }

  #choose(number) {
    const rows = [...this.#list.children];
    if (!rows.length) return this.#input.removeAttribute("aria-activedescendant");
    this.#chosen = (number + rows.length) % rows.length;
    for (const [at, each] of rows.entries()) each.setAttribute("aria-selected", at === this.#chosen);
    rows[this.#chosen].scrollIntoView({ block: "nearest" });
    this.#input.setAttribute("aria-activedescendant", rows[this.#chosen].id);
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.#choose(this.#chosen + step);
    else if (event.key === "Enter") this.#go(this.#list.children[this.#chosen]);
    // The browser would only empty the field.
    else if (event.key === "Escape") this.#dialog.close();
    else return;
    event.preventDefault();
  }

  #go(item) {
    if (!item) return;
    this.#dialog.close();
    location.assign(item.dataset.address);
  }
}

function wordsOf(typed) {
  const words = typed.split(/[\s,]+/).map((word) => word.replace(/[?!.:;]+$/, "")).filter(Boolean);
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  return telling.length ? telling : words;
}

function prepare([section, page, heading, address, text, names, called]) {
  const low = { title: (heading || page).toLowerCase(), page: page.toLowerCase(), text: text.toLowerCase() };
  return { section, page, heading, address, text, low: { ...low, names: names.toLowerCase(), called: called.toLowerCase() } };
}

// What a match is worth: of a whole word, of its beginning, and within it. A page that is called by a word comes first.
const WORTH = {
  pageTitle: [60, 45, 30], called: [60, 45, 0], title: [28, 20, 12], names: [24, 14, 6], page: [8, 6, 3], text: [4, 2, 0],
};
const MOST_FOR_A_WORD = 200;

/** As it was typed, or with “retry” for “retries” and “keep alive” for “keep-alive”, whichever finds more. */
function lookUp(passages, words, phrase) {
  const typed = { words, ...rank(passages, words, phrase) };
  const simpler = words.flatMap((word) => word.split("-").filter(Boolean).map(singular));
  if (simpler.join(" ") === words.join(" ")) return typed;
  const other = { words: simpler, ...rank(passages, simpler, simpler.join(" ")) };
  if (other.isPartial || !other.found.length) return typed;
  const isBetter = typed.isPartial || !typed.found.length || other.best / simpler.length > typed.best / words.length;
  return isBetter ? other : typed;
}

function singular(word) {
  if (/[^aeiou]ies$/.test(word)) return `${word.slice(0, -3)}y`;
  if (/(?:x|ch|sh|ss)es$/.test(word)) return word.slice(0, -2);
  return /[^s]s$/.test(word) ? word.slice(0, -1) : word;
}

/**
 * All words must be there. Text within a word counts only if nothing else is found: “rate” is not meant by “separate”.
 * If no passage has them all, those with at least half of them are found, with the most words first.
 */
function rank(passages, words, phrase) {
  if (!words.length) return { found: [] };
  const within = { ...WORTH, text: [4, 2, 1] };
  const find = (least, worth) => scored(passages, words, phrase, least, worth);
  const whole = find(words.length, WORTH);
  if (whole.found.length) return { ...whole, mark: any(words.map(beginning)) };
  const inner = find(words.length, within);
  if (inner.found.length) return { ...inner, mark: any(words.map(escaped)) };
  return { ...find(Math.ceil(words.length / 2), WORTH), mark: any(words.map(beginning)), isPartial: true };
}

function scored(passages, words, phrase, least, worth) {
  const sought = words.map(matcher);
  const rows = passages
    .map((passage) => ({ passage, score: score(passage, sought, phrase, least, worth) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, MOST);
  return { found: rows.map(({ passage }) => passage), best: rows[0]?.score ?? 0 };
}

const any = (patterns) => new RegExp(`(${patterns.join("|")})`, "giu");

const escaped = (word) => word.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
const beginning = (word) => `(?<![\\p{L}\\p{N}])${escaped(word)}`;

/** Which of the three a word is in a text: 0 whole, 1 a beginning, 2 within, or -1. An underscore begins another word. */
function matcher(word) {
  const whole = new RegExp(`${beginning(word)}(?![\\p{L}\\p{N}])`, "u");
  const start = new RegExp(beginning(word), "u");
  return (text) => (!text.includes(word) ? -1 : whole.test(text) ? 0 : start.test(text) ? 1 : 2);
}

function score({ section, heading, low }, sought, phrase, least, worth) {
  const title = heading ? worth.title : worth.pageTitle;
  const parts = [
    [low.title, title], [low.called, worth.called], [low.names, worth.names], [low.page, worth.page], [low.text, worth.text],
  ];
  const each = sought.map((find) => Math.max(0, ...parts.map(([text, values]) => values[find(text)] ?? 0))).filter(Boolean);
  if (each.length < least) return 0;
  let sum = each.reduce((one, other) => one + other, each.length * MOST_FOR_A_WORD);
  if (low.title === phrase) sum += 40;
  else if (low.title.includes(phrase)) sum += 12;
  return sum + (low.text.includes(phrase) ? 3 : 0) - (LESS_FOR_SECTION[section] ?? 0);
}

function row(passage, words, number, mark) {
  const item = document.createElement("li");
  item.id = `found-${number}`;
  item.setAttribute("role", "option");
  item.dataset.address = passage.address;
  const where = document.createElement("small");
  where.textContent = passage.heading ? `${passage.section} › ${passage.page}` : passage.section;
  const title = document.createElement("strong");
  title.append(...marked(passage.heading || passage.page, mark));
  const text = document.createElement("p");
  text.append(...marked(around(passage, words), mark));
  item.append(where, title, text);
  return item;
}

/** The part of the text in which the first of the words stands, with an ellipsis wherever something is left out. */
function around({ text, low }, words) {
  const places = words.map((word) => low.text.search(new RegExp(beginning(word), "u"))).filter((at) => at >= 0);
  const at = Math.min(...places, text.length);
  const from = places.length && at > AROUND ? text.indexOf(" ", at - AROUND / 2) + 1 : 0;
  const to = text.length - from > LONGEST ? text.lastIndexOf(" ", from + LONGEST) : text.length;
  return `${from ? "… " : ""}${text.slice(from, to)}${to < text.length ? " …" : ""}`;
}

function marked(text, pattern) {
  return text.split(pattern).map((part, number) => {
    if (number % 2 === 0) return part;
    const mark = document.createElement("mark");
    mark.textContent = part;
    return mark;
  });
}
