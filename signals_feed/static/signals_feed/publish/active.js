// The cards of a publisher's active signals: their results as they are now, and each form sent once.
export const EVERY_MS = 1000;
const live = document.querySelector("[data-live]");

export async function askLive(terms = {}) {
  const answer = await fetch(`${live.dataset.live}?${new URLSearchParams(terms)}`, { signal: AbortSignal.timeout(5 * EVERY_MS) });
  // Logged out meanwhile: the page leads to the login.
  if (answer.redirected) location.reload();
  if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
  return answer.json();
}

/** Those that are in no answer any more have ended: what stood on their cards is no longer so. */
export function showResults(signals) {
  const active = new Set(signals.map(({ id }) => id));
  for (const card of live.querySelectorAll("[data-signal]")) if (!active.has(card.dataset.signal)) card.replaceWith(ended(card));
  signals.forEach(showResult);
}

function ended(card) {
  const shown = live.querySelector("template").content.cloneNode(true).firstElementChild;
  shown.querySelector("h3").prepend(card.querySelector("h3").firstChild.textContent);
  shown.querySelector("a").href = card.dataset.page;
  return shown;
}

function showResult({ id, state, badge, price, gain, r, tone, fill }) {
  const card = live.querySelector(`[data-signal="${id}"]`);
  if (!card) return;
  const shown = card.querySelector("[data-state]");
  shown.textContent = state;
  shown.className = `badge ${badge}`;
  const filled = card.querySelector("[data-fill]");
  if (filled) filled.textContent = fill;
  if (!price) return;
  card.querySelector("[data-until-filled]")?.remove();
  card.querySelector("[data-price]").textContent = price;
  const result = card.querySelector("[data-result]");
  result.textContent = `${gain}, ${r}`;
  result.className = tone;
}

// A second press sends nothing; coming back with the browser's button lets the forms be sent again.
for (const each of document.querySelectorAll("form[data-send-once]:not([data-publish])")) {
  each.addEventListener("submit", (event) => {
    if (each.dataset.sent) event.preventDefault();
    each.dataset.sent = "yes";
  });
}
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const each of document.querySelectorAll("form[data-sent]")) delete each.dataset.sent;
});
