// The search: one list of passages, loaded once, so that it works without a connection from then on.
const MOST = 12;
const AROUND = 60;

export function startSearch(dialog) {
  const search = new Search(dialog);
  for (const button of document.querySelectorAll("[data-search]")) button.addEventListener("click", () => search.open());
  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
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
    const words = this.#input.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    const found = words.length ? rank(this.#passages, words) : [];
    this.#list.replaceChildren(...found.map((passage, number) => row(passage, words, number)));
    this.#list.hidden = !found.length;
    this.#input.setAttribute("aria-expanded", found.length > 0);
    this.#choose(0);
    if (!words.length) this.#say("Search every guide, endpoint, stream, field and error code.");
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

function prepare([section, page, heading, address, text, names]) {
  const low = [heading || page, page, text].map((each) => each.toLowerCase());
  return { section, page, heading, address, text, low, names: names.toLowerCase().split(" ") };
}

/** All words must be there; the title of a page counts most, then a heading or a name that is explained, then the text. */
function rank(passages, words) {
  return passages
    .map((passage) => ({ passage, score: score(passage, words) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, MOST)
    .map(({ passage }) => passage);
}

function score({ heading, low: [title, page, text], names }, words) {
  let sum = 0;
  for (const word of words) {
    if (title.startsWith(word)) sum += heading ? 8 : 12;
    else if (title.includes(word)) sum += heading ? 6 : 9;
    else if (names.includes(word)) sum += 7;
    else if (names.some((name) => name.startsWith(word))) sum += 4;
    else if (page.includes(word)) sum += 3;
    else if (text.includes(word)) sum += 1;
    else return 0;
  }
  return sum + (title === words.join(" ") ? 10 : 0);
}

function row(passage, words, number) {
  const item = document.createElement("li");
  item.id = `found-${number}`;
  item.setAttribute("role", "option");
  item.dataset.address = passage.address;
  const where = document.createElement("small");
  where.textContent = passage.heading ? `${passage.section} › ${passage.page}` : passage.section;
  const title = document.createElement("strong");
  title.append(...marked(passage.heading || passage.page, words));
  const text = document.createElement("p");
  text.append(...marked(around(passage, words), words));
  item.append(where, title, text);
  return item;
}

function around({ text, low }, words) {
  const at = Math.max(0, ...words.map((word) => low[2].indexOf(word)));
  return at > AROUND ? `… ${text.slice(text.indexOf(" ", at - AROUND / 2) + 1)}` : text;
}

function marked(text, words) {
  const any = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "gi");
  return text.split(any).map((part, number) => {
    if (number % 2 === 0) return part;
    const mark = document.createElement("mark");
    mark.textContent = part;
    return mark;
  });
}
