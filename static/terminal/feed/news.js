// The newest news, each with what the model makes of it in words and not only in colour.
import { persist } from "../api.js";
import { ago, signed, write } from "../format.js";
import { FeedPane, phrase } from "./feed_pane.js";

const POLL_MS = 60_000;
const SIGNS = { bullish: "▲ Bullish", neutral: "• Neutral", bearish: "▼ Bearish" };

export class News {
  constructor(pane, { api, instruments, choose }) {
    Object.assign(this, { api, instruments, choose });
    this.pane = new FeedPane(pane, { what: "News", nothing: "No news yet. Items appear here as they are published." });
    this.template = pane.querySelector("template");
    setInterval(() => {
      for (const when of this.pane.list.querySelectorAll("[data-time]")) write(when, ago(when.dataset.time));
      if (!document.hidden && !this.wanted) this.load();
    }, POLL_MS);
  }

  /** A later load takes the place of one that is still under way. */
  async load() {
    const wanted = (this.wanted = {});
    const news = await persist(() => this.ask(), () => this.wanted === wanted);
    if (this.wanted !== wanted) return;
    this.wanted = null;
    const focused = keyOf(this.pane.focused);
    this.pane.show(news.items.map((item) => this.item(item)));
    this.pane.tell("");
    if (focused) [...this.pane.list.querySelectorAll("a, button")].find((each) => keyOf(each) === focused)?.focus();
  }

  async ask() {
    try {
      return await this.api.get("news", { limit: 30, expand: "id,url,source,symbols" });
    } catch (error) {
      this.pane.fail(error);
      throw error;
    }
  }

  item({ id, title, url, source, category, sentiment, sentiment_score: score, symbols, timestamp }) {
    const item = this.template.content.cloneNode(true).firstElementChild;
    const part = (name) => item.querySelector(`[data-part="${name}"]`);
    const isSafe = /^https?:\/\//.test(url ?? "");
    const heading = isSafe ? Object.assign(document.createElement("a"), { href: url, rel: "noopener", target: "_blank" }) : part("title");
    heading.textContent = title;
    if (isSafe) part("title").append(heading);
    item.dataset.id = id;
    part("sentiment").textContent = `${SIGNS[sentiment]} ${signed(score, 2)}`;
    part("sentiment").classList.add(sentiment);
    const when = phrase(ago(timestamp));
    when.dataset.time = timestamp;
    part("about").append(...[titled(category), source].filter(Boolean).map((text) => phrase(text)), when);
    part("symbols").append(...symbols.map((symbol) => this.chip(symbol)));
    return item;
  }

  /** What is offered can be looked at. */
  chip(symbol) {
    if (!this.instruments[symbol]) return phrase(symbol, "chip");
    const chip = Object.assign(document.createElement("button"), { type: "button", className: "phrase chip", textContent: symbol });
    chip.title = `Show ${this.instruments[symbol].name}`;
    chip.addEventListener("click", () => this.choose(symbol));
    return chip;
  }
}

const titled = (word) => word.charAt(0).toUpperCase() + word.slice(1);
const keyOf = (element) => element && `${element.closest("[data-id]")?.dataset.id} ${element.textContent}`;
