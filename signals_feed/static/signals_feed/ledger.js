// Walks the whole ledger over the public interface and computes every hash again.
import { Token } from "../terminal/streams/token.js";
import { Broken, START, follow } from "./chain.js";

const section = document.querySelector("[data-check]");
const part = Object.fromEntries([...section.querySelectorAll("[data-part]")].map((each) => [each.dataset.part, each]));
const token = new Token(section.dataset.csrf);
const A_PAGE = 500;
const NOTED = "tickwire.ledger";
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const dayOf = ({ day }) => DAY.format(new Date(day));
const grouped = (number) => number.toLocaleString("en-GB");
let run = null;

async function page(after, signal) {
  const headers = { "X-API-Key": await token.get() };
  const answer = await fetch(`/api/signals/ledger?after=${after}&limit=${A_PAGE}`, { headers, signal });
  if (answer.ok) return answer.json();
  if (answer.status === 401) token.forget();
  const waitS = Number(answer.headers.get("Retry-After"));
  const retries = answer.status === 401 || answer.status === 429 || answer.status === 503;
  const { error } = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(error?.message ?? `The service answered ${answer.status}.`), { waitS, retries });
}

/** Waits as long as the service asks for, and gives up where waiting does not help. */
async function patiently(after, signal) {
  for (let tries = 0; ; tries++) {
    try {
      return await page(after, signal);
    } catch (failure) {
      if (!failure.retries || tries === 5) throw failure;
      tell("", `${failure.message} The check continues automatically.`);
      await new Promise((done) => setTimeout(done, 1000 * Math.max(1, failure.waitS || 0)));
      signal.throwIfAborted();
    }
  }
}

async function check(signal) {
  const noted = readNoted();
  let last = START;
  let head = null;
  for (;;) {
    const answer = await patiently(last.position, signal);
    head = answer.head;
    if (!answer.items.length) break;
    const at = answer.items.find(({ position }) => position === noted?.position);
    last = await follow(last, answer.items);
    if (at && at.hash !== noted.hash) throw new Broken(at.position, `is not the one that this browser noted on ${dayOf(noted)}: the ledger was rewritten.`);
    part.progress.max = Math.max(head.position, 1);
    part.progress.value = last.position;
    tell("", `Checking: ${grouped(last.position)} of ${grouped(head.position)} entries.`);
  }
  if (head.position !== last.position) throw new Broken(last.position + 1, `is missing: the ledger says that it ends at ${head.position}.`);
  if (head.hash !== last.hash) throw new Broken(last.position, "is not the head that the ledger names.");
  if (noted && noted.position > last.position) throw new Broken(last.position + 1, `is missing: this browser noted ${noted.position} entries on ${dayOf(noted)}.`);
  return { last, noted };
}

function before(position) {
  if (position < 2) return "";
  return position === 2 ? "The entry before it holds." : `The ${grouped(position - 1)} entries before it hold.`;
}

function tell(tone, text) {
  part.verdict.hidden = false;
  part.verdict.className = `verdict ${tone}`;
  part.verdict.textContent = text;
}

function readNoted() {
  try {
    const noted = JSON.parse(localStorage.getItem(NOTED));
    return Number.isInteger(noted?.position) && Date.parse(noted.day) ? noted : null;
  } catch {
    return null;
  }
}

function note({ position, hash }) {
  const day = new Date().toISOString().slice(0, 10);
  try {
    localStorage.setItem(NOTED, JSON.stringify({ position, hash, day }));
  } catch {
    // Without storage the next check begins without a note.
  }
}

function showNoted() {
  const noted = readNoted();
  part.noted.hidden = !noted;
  if (noted) part.noted.textContent = `This browser last noted entry ${grouped(noted.position)} on ${dayOf(noted)}, and will compare it next time.`;
}

function showRunning(running) {
  part.start.hidden = running;
  part.stop.hidden = part.progress.hidden = !running;
}

async function start() {
  run = new AbortController();
  part.progress.value = 0;
  showRunning(true);
  tell("", "Reading the first entries.");
  try {
    const { last, noted } = await check(run.signal);
    const same = noted ? ` Entry ${grouped(noted.position)}, noted on ${dayOf(noted)}, is unchanged.` : "";
    tell("verified", `${grouped(last.position)} ${last.position === 1 ? "entry" : "entries"} verified, head = ${last.hash}.${same}`);
    note(last);
    showNoted();
  } catch (failure) {
    if (failure instanceof Broken) tell("altered", `${failure.message} ${before(failure.position)}`);
    else if (run.signal.aborted) tell("", "Stopped.");
    else tell("", `The check could not be finished, which says nothing about the ledger: ${failure.message}`);
  } finally {
    showRunning(false);
    part.start.focus();
  }
}

if (globalThis.crypto?.subtle) {
  showRunning(false);
  part.start.addEventListener("click", start);
  part.stop.addEventListener("click", () => run.abort());
  showNoted();
} else {
  tell("", "Browsers compute hashes on secure pages only. Open this page over HTTPS.");
}
