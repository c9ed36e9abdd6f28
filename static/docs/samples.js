// Samples in tabs: a language that is chosen once is chosen on every page.
import { copyFrom } from "../site/clipboard.js";

const KEY = "tickwire-language";
const MARKS =
  '<svg class="copy-mark" viewBox="0 0 24 24" aria-hidden="true"><rect x="9" y="9" width="11" height="11" rx="2"/><path d="M5 15V6a2 2 0 0 1 2-2h8"/></svg>' +
  '<svg class="done" viewBox="0 0 24 24" aria-hidden="true"><path d="m5 12.5 4.5 4.5L19 7.5"/></svg>';

export function startTabs() {
  for (const list of document.querySelectorAll(".choice")) {
    list.addEventListener("click", ({ target }) => target.dataset.language && choose(target.dataset.language, target));
    list.addEventListener("keydown", (event) => move(event, list));
  }
  addEventListener("storage", ({ key, newValue }) => key === KEY && newValue && show(newValue));
  show(document.documentElement.dataset.language);
}

function move(event, list) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const tabs = [...list.children];
  const next = tabs.at((tabs.indexOf(event.target) + step) % tabs.length);
  choose(next.dataset.language, next);
  next.focus();
}

function choose(language, tab) {
  const before = tab.getBoundingClientRect().top;
  try {
    localStorage.setItem(KEY, language);
  } catch {} // Storage is switched off: the choice lasts as long as the page.
  show(language);
  // Samples above are longer or shorter now; the one in hand stays where it is.
  scrollBy({ top: tab.getBoundingClientRect().top - before, behavior: "instant" });
}

function show(language) {
  document.documentElement.dataset.language = language;
  for (const tab of document.querySelectorAll(".choice [data-language]")) {
    const isChosen = tab.dataset.language === language;
    tab.setAttribute("aria-selected", isChosen);
    tab.tabIndex = isChosen ? 0 : -1;
  }
}

export function addCopyButtons() {
  for (const figure of document.querySelectorAll(".doc .code")) {
    if (figure.closest(".answered")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.innerHTML = MARKS;
    button.setAttribute("aria-label", "Copy");
    button.addEventListener("click", () => copy(button, figure.querySelector("code")));
    figure.append(button);
  }
}

async function copy(button, source) {
  if (!(await copyFrom(source))) return;
  button.classList.add("copied");
  button.setAttribute("aria-label", "Copied");
  setTimeout(() => {
    button.classList.remove("copied");
    button.setAttribute("aria-label", "Copy");
  }, 1500);
}
