// The quote beside the form and the results of active signals, asked for every second while somebody looks.
const live = document.querySelector("[data-live]");
const form = document.querySelector("form[data-publish]");
const quote = document.querySelector("[data-quote]");
const part = (name) => quote.querySelector(`[data-${name}]`);
const EVERY_MS = 1000;
let known = null;
let asked = 0;

function age(ms) {
  if (ms < 1000) return "now";
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}

function showQuote(latestQuote) {
  known = latestQuote;
  part("symbol").textContent = latestQuote.symbol;
  for (const name of ["bid", "ask", "spread"]) part(name).textContent = latestQuote[name] ?? "–";
  part("age").textContent = latestQuote.bid ? age(latestQuote.age_ms) : "no quote yet";
  part("state").textContent = latestQuote.words;
  part("take").hidden = latestQuote.state !== "open";
}

function showResult({ id, price, pnl, pnl_r, tone }) {
  const card = live.querySelector(`[data-signal="${id}"]`);
  if (!card || !price) return;
  card.querySelector("[data-price]").textContent = price;
  const result = card.querySelector("[data-result]");
  result.textContent = `${pnl}\u00a0pips, ${pnl_r}\u00a0R`;
  result.className = tone;
}

async function refresh() {
  if (document.hidden) return;
  const mine = ++asked;
  const symbol = form.elements.symbol.value;
  try {
    const url = `${live.dataset.live}?symbol=${encodeURIComponent(symbol)}`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(5 * EVERY_MS) });
    // Logged out meanwhile: the page leads to the login.
    if (answer.redirected) return location.reload();
    if (!answer.ok) throw new Error(answer.statusText);
    const latest = await answer.json();
    // An older answer must not overwrite that of the instrument chosen since.
    if (mine !== asked) return;
    showQuote(latest.quote);
    latest.signals.forEach(showResult);
    part("lost").hidden = true;
  } catch {
    if (mine === asked) part("lost").hidden = false;
  }
}

async function keepFresh() {
  await refresh();
  setTimeout(keepFresh, EVERY_MS);
}

part("take").addEventListener("click", () => {
  form.elements.entry.value = form.elements.direction.value === "buy" ? known.ask : known.bid;
  form.elements.entry.focus();
});
form.elements.symbol.addEventListener("change", refresh);
document.addEventListener("visibilitychange", refresh);
keepFresh();

// A second press sends nothing; coming back with the browser's button lets the forms be sent again.
for (const each of document.querySelectorAll("form[data-send-once]")) {
  each.addEventListener("submit", (event) => {
    if (each.dataset.sent) event.preventDefault();
    each.dataset.sent = "yes";
  });
}
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const each of document.querySelectorAll("form[data-sent]")) delete each.dataset.sent;
});
