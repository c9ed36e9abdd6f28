// Renews the page while it is visible: every minute, and as soon as it becomes visible again.
const EVERY_MS = 60_000;
const content = document.getElementById("content");

async function renew() {
  if (document.hidden) return;
  try {
    replace([...content.children], await partsNow());
    content.classList.remove("lost");
  } catch {
    content.classList.add("lost");
    content.querySelector("[data-lost]").hidden = false;
  }
}

async function partsNow() {
  const answer = await fetch(location.pathname, { signal: AbortSignal.timeout(EVERY_MS / 2) });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  // Who answers instead of the service answers with another page.
  return [...page.querySelector("#content:has(.verdict)").children];
}

/** Part by part, so that who reads or walks through one that is as it was is not disturbed. */
function replace(parts, others) {
  if (parts.length !== others.length) {
    content.replaceChildren(...others);
    return;
  }
  for (const [at, part] of parts.entries()) {
    if (!part.isEqualNode(others[at]) && !part.contains(document.activeElement)) part.replaceWith(others[at]);
  }
}

setInterval(renew, EVERY_MS);
document.addEventListener("visibilitychange", renew);
