// Ticks the first steps while the page is open, as soon as the service has seen them.
import "./copying.js";

const EVERY_MS = 5_000;
// A visitor who has done nothing for so long has left.
const LOOKS = 240;

const card = document.getElementById("first-run");
let looks = 0;

const timer = setInterval(async () => {
  if (document.hidden) return;
  looks += 1;
  if (looks > LOOKS) return stop();
  const newer = await look().catch(() => null);
  if (!newer) return;
  showUse(newer);
  show(newer.getElementById("first-run"));
}, EVERY_MS);

function stop() {
  clearInterval(timer);
}

async function look() {
  const answer = await fetch(card.dataset.again);
  if (!answer.ok || answer.redirected) {
    stop(); // Logged out: the next page says so.
    return null;
  }
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// The list of keys says the same as the steps.
function showUse(newer) {
  for (const used of newer.querySelectorAll("[data-last-used]")) {
    const shown = document.querySelector(`[data-last-used="${used.dataset.lastUsed}"]`);
    if (shown && shown.textContent !== used.textContent) shown.replaceChildren(...used.childNodes);
  }
}

// Only what changed, so that a selected command stays selected.
function show(newer) {
  if ("over" in newer.dataset) {
    stop();
    card.replaceChildren(...newer.childNodes);
    return;
  }
  for (const step of newer.querySelectorAll(".done")) {
    const older = card.querySelector(`[data-step="${step.dataset.step}"]:not(.done)`);
    if (!older) continue;
    older.replaceWith(step);
    card.querySelector("[role=status]").textContent = newer.querySelector("[role=status]").textContent;
    card.querySelector("progress").value = newer.querySelector("progress").value;
  }
}
