// The quote beside the form, what the signal would risk and earn, and the results of active signals: asked for
// every second while somebody looks, and with every change of the form.
import { Token } from "../../terminal/streams/token.js";
import { price as priceText } from "../../terminal/format.js";
import { EVERY_MS, askLive, showResults } from "./active.js";
import { LevelsChart } from "./chart.js";
import { Confirming } from "./confirming.js";

const form = document.querySelector("form[data-publish]");
const quote = document.querySelector("[data-quote]");
const part = (name) => quote.querySelector(`[data-${name}]`);
const stake = (name) => form.querySelector(`[data-part="${name}"]`);
const why = form.querySelector("[data-why]");
const send = form.querySelector("[data-send]");
const token = new Token(form.elements.csrfmiddlewaretoken.value);
const confirming = new Confirming(form);
const chart = new LevelsChart(part("chart"), ask);
const PRICES = ["entry", "stop_loss", "take_profit"];
const NEEDED = ["stop_loss", "take_profit"];
const TYPED_MS = 150;
const CANDLES_EVERY_MS = 60_000;
const HINT = stake("hint").textContent;
const INCOMPLETE = "The stop or the target is missing.";
let known = null;
let knownAt = 0;
let asked = 0;
let typing = null;

async function ask(path, parameters) {
  const answer = await fetch(`/api/${path}?${new URLSearchParams(parameters)}`, { headers: { "X-API-Key": await token.get() } });
  if (answer.status === 401) token.forget();
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error.message);
  return body;
}

function age(ms) {
  if (ms < 1000) return "now";
  for (const [length, unit] of [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"]]) {
    if (ms >= 2 * length) return `${Math.floor(ms / length)} ${unit}`;
  }
  return `${Math.floor(ms / 1000)} s`;
}

const decimalsOf = (text) => text?.split(".")[1]?.length ?? 0;

function showQuote(latest) {
  known = latest;
  knownAt = performance.now();
  part("symbol").textContent = latest.symbol;
  const digits = decimalsOf(latest.bid);
  for (const name of ["bid", "ask", "spread"]) part(name).textContent = latest[name] ? priceText(latest[name], digits) : "–";
  showAge();
  why.hidden = !latest.why;
  // Read out again only when it changes.
  if (why.textContent !== latest.why) why.textContent = latest.why;
  showWhetherReady();
  if (latest.bid) chart.setQuote(Number(latest.bid), digits);
  showLevels();
}

/** It goes on while the service is away. */
function showAge() {
  part("age").textContent = known?.bid ? age(known.age_ms + performance.now() - knownAt) : "no quote yet";
}

/** What an empty entry stands for. */
const marketPrice = () => (form.elements.direction.value === "buy" ? known?.ask : known?.bid) ?? "";

/** Nothing can be sent while the market is closed, or while a price is missing. */
function showWhetherReady() {
  send.disabled = Boolean(known?.why) || NEEDED.some((name) => !form.elements[name].value.trim());
}

function showPreview({ risk, reward, ratio, faults = {} }) {
  stake("risk").replaceChildren(...figure(risk && { gain: size(risk.gain), percent: size(risk.percent) }));
  stake("reward").replaceChildren(...figure(reward));
  stake("ratio").textContent = ratio ?? "–";
  stake("hint").textContent = risk || Object.keys(faults).length ? "" : HINT;
  for (const name of PRICES) mark(form.elements[name], faults[name]);
}

/** Its label says already that a risk is a loss. */
const size = (text) => text.replace(/^−/, "");

function figure(end) {
  const small = document.createElement("small");
  small.textContent = end?.percent ?? "";
  return [end?.gain ?? "–", small];
}

/** What is wrong stands at its field, and is read out with it. */
function mark(input, fault = "") {
  if (fault) forget(input);
  const told = messageOf(input);
  if (told.textContent !== fault) told.textContent = fault;
  if (fault) input.setAttribute("aria-invalid", "true");
  else if (input.dataset.marked) input.removeAttribute("aria-invalid");
  input.dataset.marked = fault ? "yes" : "";
}

function messageOf(input) {
  const id = `${input.id}_fault`;
  const there = document.getElementById(id);
  if (there) return there;
  const told = Object.assign(document.createElement("p"), { id, className: "fault" });
  told.setAttribute("role", "status");
  input.after(told);
  input.setAttribute("aria-describedby", `${input.getAttribute("aria-describedby") ?? ""} ${id}`.trim());
  return told;
}

/** What the service refused was about the market of then. */
function forget(input) {
  const refused = document.getElementById(`${input.id}_error`);
  if (!refused) return;
  refused.remove();
  const described = input.getAttribute("aria-describedby")?.split(" ") ?? [];
  input.setAttribute("aria-describedby", described.filter((id) => id !== refused.id).join(" "));
}

/** What stood at a field was about what it held before, also when the service refused the form. */
function clearFault(input) {
  forget(input);
  input.removeAttribute("aria-invalid");
  mark(input);
}

/** As the service reads it, also copied from a page: 87,352.16. What is no price is not drawn. */
function numberOf(text) {
  const plain = /^\d{1,3}(,\d{3})+\.\d+$/.test(text.trim()) ? text.replaceAll(",", "") : text.trim();
  return /^(\d+\.?\d*|\.\d+)$/.test(plain) ? Number(plain) : 0;
}

function showLevels() {
  const { entry: field } = form.elements;
  field.placeholder = marketPrice() && `Market price: ${priceText(marketPrice(), decimalsOf(marketPrice()))}`;
  const [entry, stop, target] = [field.value.trim() || marketPrice(), ...NEEDED.map((name) => form.elements[name].value)].map(numberOf);
  chart.setLevels({ entry, stop, target });
}

function terms() {
  return Object.fromEntries(["symbol", "direction", ...PRICES].map((name) => [name, form.elements[name].value]));
}

function show(latest) {
  part("lost").hidden = true;
  if (latest.quote) showQuote(latest.quote);
  showPreview(latest.preview);
  confirming.follow(latest.preview, latest.quote?.why);
  showResults(latest.signals);
}

async function refresh() {
  if (document.hidden) return;
  const mine = ++asked;
  try {
    const latest = await askLive(terms());
    // An older answer must not overwrite that of the instrument chosen since.
    if (mine === asked) show(latest);
  } catch {
    if (mine !== asked) return;
    part("lost").hidden = false;
    showAge();
    confirming.lose();
  }
}

/** Asks with the terms as they are now, whatever else is under way. */
async function review() {
  const mine = ++asked;
  let latest = null;
  try {
    latest = await askLive(terms());
  } catch {
    part("lost").hidden = false;
    stake("hint").textContent = "The service is not responding, so nothing was published. Try again.";
    return;
  }
  if (mine === asked) show(latest);
  const { quote: market, preview } = latest;
  if (market?.why) return;
  if (preview.risk) confirming.show(preview);
  else if (firstFault(preview)) form.elements[firstFault(preview)].focus();
  else stake("hint").textContent = INCOMPLETE;
}

const firstFault = ({ faults = {} }) => PRICES.find((name) => faults[name]);

async function keepFresh() {
  await refresh();
  setTimeout(keepFresh, EVERY_MS);
}

async function showCandles() {
  const chosen = part("timeframes").querySelector('[aria-pressed="true"]').value;
  try {
    await chart.show(form.elements.symbol.value, chosen);
    part("chart-note").textContent = "";
    part("chart").setAttribute("aria-label", `Candles of ${form.elements.symbol.value} with the levels of the signal`);
  } catch (failure) {
    part("chart-note").textContent = `The chart could not be loaded: ${failure.message}`;
  }
}

form.elements.symbol.addEventListener("change", () => {
  known = null;
  for (const name of PRICES) {
    form.elements[name].value = "";
    clearFault(form.elements[name]);
  }
  showLevels();
  showWhetherReady();
  refresh();
  showCandles();
});
form.addEventListener("input", ({ target }) => {
  // An answer still under way is about the terms as they were.
  asked++;
  if (PRICES.includes(target.name)) clearFault(target);
  showLevels();
  showWhetherReady();
  clearTimeout(typing);
  typing = setTimeout(refresh, TYPED_MS);
});
for (const button of part("timeframes").children) {
  button.addEventListener("click", () => {
    for (const each of part("timeframes").children) each.setAttribute("aria-pressed", String(each === button));
    showCandles();
  });
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  review();
});
document.addEventListener("visibilitychange", refresh);
part("timeframes").hidden = false;
showLevels();
showWhetherReady();
showCandles();
setInterval(() => document.hidden || showCandles(), CANDLES_EVERY_MS);
keepFresh();
