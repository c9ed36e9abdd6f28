// The newest news, each with what the model makes of it in words and not only in colour.
import { persist } from "../api.js";
import { ago, signed } from "../format.js";

const POLL_MS = 60_000;
const SIGNS = { bullish: "▲", neutral: "•", bearish: "▼" };

export class News {
  constructor(list, template, api) {
    Object.assign(this, { list, template, api });
    setInterval(() => document.hidden || this.wanted || this.load(), POLL_MS);
  }

  /** A later load takes the place of one that is still under way. */
  async load() {
    const wanted = (this.wanted = {});
    const ask = () => this.api.get("news", { limit: 30, expand: "url,source" });
    const news = await persist(ask, () => this.wanted === wanted);
    if (this.wanted !== wanted) return;
    this.wanted = null;
    const focused = this.list.querySelector(":focus")?.href;
    this.list.replaceChildren(...news.items.map((item) => this.item(item)));
    if (focused) [...this.list.querySelectorAll("a")].find(({ href }) => href === focused)?.focus();
  }

  item({ title, url, source, category, sentiment, sentiment_score: score, timestamp }) {
    const item = this.template.content.cloneNode(true).firstElementChild;
    const part = (name) => item.querySelector(`[data-part="${name}"]`);
    const safe = /^https?:\/\//.test(url ?? "");
    const heading = safe ? Object.assign(document.createElement("a"), { href: url, rel: "noopener", target: "_blank" }) : part("title");
    heading.textContent = title;
    if (safe) part("title").append(heading);
    part("sentiment").textContent = `${SIGNS[sentiment]} ${sentiment} ${signed(score, 2)}`;
    part("sentiment").classList.add(sentiment);
    part("about").textContent = [category, source, ago(timestamp)].filter(Boolean).join(" · ");
    return item;
  }
}
