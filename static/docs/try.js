// A request by hand, with the page's own key or one that is typed.
import { Token } from "../terminal/streams/token.js";
import { indented } from "./json.js";

const form = document.getElementById("try");
const { csrf, hasPageKey } = JSON.parse(document.getElementById("trial").textContent);
const token = new Token(csrf);
const status = form.querySelector("output");
const answered = form.querySelector(".answered");

function asked() {
  const inputs = [...form.querySelectorAll("[data-place]")].filter((input) => input.value.trim());
  const of = (place) => inputs.filter((input) => input.dataset.place === place).map((input) => [input.name, input.value.trim()]);
  const named = new Map(of("path"));
  // The path of a file in the archive keeps its slashes.
  const path = form.dataset.path.replace(/\{(\w+)\}/g, (_, name) =>
    (named.get(name) ?? "").split("/").map(encodeURIComponent).join("/"));
  const query = new URLSearchParams(of("query"));
  return { address: query.size ? `${path}?${query}` : path, headers: Object.fromEntries(of("header")) };
}

async function key() {
  return form.querySelector("[data-key]").value.trim() || (hasPageKey ? token.get() : "");
}

async function send() {
  const { address, headers } = asked();
  status.textContent = "Sending…";
  try {
    const began = performance.now();
    const answer = await fetch(address, { headers: { ...headers, "X-API-Key": await key() } });
    await show(answer, Math.round(performance.now() - began));
  } catch (error) {
    status.textContent = error.message;
  }
}

async function show(answer, ms) {
  status.textContent = `${answer.status} in ${ms} ms`;
  const body = form.querySelector("[data-body]");
  const isJson = answer.headers.get("Content-Type")?.startsWith("application/json");
  if (isJson) body.replaceChildren(...indented(await answer.text()));
  else body.textContent = `${(await answer.arrayBuffer()).byteLength} bytes of ${answer.headers.get("Content-Type")}`;
  const headers = [...answer.headers].map(([name, value]) => `${name}: ${value}`);
  form.querySelector("[data-headers]").textContent = headers.join("\n");
  answered.hidden = false;
  answered.dataset.status = answer.status;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
