// Fetches this page again and puts its new middle in place of the old one.
const pause = document.getElementById("status-pause");
const silent = document.getElementById("status-silent");
const middle = () => document.getElementById("market-status");
const everyMs = Number(middle().dataset.everyMs);
let isPaused = false;

function isReading() {
  const selection = getSelection();
  return !selection.isCollapsed && middle().contains(selection.anchorNode);
}

function replace(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("market-status");
  // Another page came, such as the login: go where it leads.
  if (!fresh) return location.reload();
  const focused = middle().contains(document.activeElement) ? document.activeElement.id : "";
  middle().replaceWith(fresh);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

async function refresh() {
  if (isPaused || document.hidden || isReading()) return;
  try {
    const answer = await fetch(location.href, { signal: AbortSignal.timeout(2 * everyMs) });
    if (!answer.ok) throw new Error(answer.statusText);
    const text = await answer.text();
    if (!isPaused) replace(text);
    silent.hidden = true;
  } catch {
    silent.hidden = false;
  }
}

async function keepFresh() {
  await refresh();
  setTimeout(keepFresh, everyMs);
}

pause.hidden = false;
pause.addEventListener("click", () => {
  isPaused = !isPaused;
  pause.setAttribute("aria-pressed", String(isPaused));
  pause.firstElementChild.textContent = isPaused ? "play_arrow" : "pause";
  refresh();
});
document.addEventListener("visibilitychange", refresh);
setTimeout(keepFresh, everyMs);
