// Keys for the queue of drafts. Each presses what the page has anyway, and the page's answer replaces it.
const silent = document.getElementById("queue-silent");
const queue = () => document.getElementById("queue");
const items = () => [...queue().querySelectorAll(".queue-item")];
const boxes = () => items().map((item) => item.querySelector('[type="checkbox"]'));
const current = () => queue().querySelector('[aria-current="true"]');
let isBusy = false;

function goTo(item) {
  if (!item) return;
  current()?.removeAttribute("aria-current");
  item.setAttribute("aria-current", "true");
  item.focus({ preventScroll: true });
  item.scrollIntoView({ block: "nearest" });
}

function step(by) {
  const all = items();
  goTo(all[all.indexOf(current()) + by]);
}

function press(key) {
  const target = current()?.querySelector(`[data-key="${key}"]`);
  if (!target) return;
  if (target.tagName === "INPUT") target.focus();
  else target.click();
}

function pressChosen(act) {
  document.querySelector(`#queue-chosen [value="${act}"]`)?.click();
}

function tick() {
  const box = current()?.querySelector('[type="checkbox"]');
  if (box) box.checked = !box.checked;
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  x: tick,
  P: () => pressChosen("publish"),
  R: () => pressChosen("reject"),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isBusy) return;
  if (event.target.matches("input:not([type=checkbox]), textarea, select")) {
    if (event.key === "Escape") goTo(event.target.closest(".queue-item"));
    return;
  }
  if (!KEYS[event.key] && !/^[prseo1-4]$/.test(event.key)) return;
  event.preventDefault();
  (KEYS[event.key] ?? (() => press(event.key)))();
});

// What has the focus is what the keys are for.
document.addEventListener("focusin", (event) => {
  const item = event.target.closest(".queue-item");
  if (!item || item === current()) return;
  current()?.removeAttribute("aria-current");
  item.setAttribute("aria-current", "true");
});

document.addEventListener("submit", (event) => {
  if (!queue().contains(event.target)) return;
  event.preventDefault();
  if (!isBusy) send(event.target, event.submitter);
});

async function send(form, submitter) {
  isBusy = true;
  queue().setAttribute("aria-busy", "true");
  const ticked = boxes().filter((box) => box.checked).map((box) => box.value);
  try {
    const body = new FormData(form, submitter);
    const answer = await fetch(form.action, { method: "POST", body, signal: AbortSignal.timeout(15_000) });
    if (!answer.ok) throw new Error(answer.statusText);
    replace(await answer.text(), ticked);
    silent.hidden = true;
  } catch {
    silent.hidden = false;
  } finally {
    isBusy = false;
    queue().removeAttribute("aria-busy");
  }
}

function replace(text, ticked) {
  const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("queue");
  // Another page came, such as the login: go where it leads.
  if (!fresh) return location.reload();
  queue().replaceWith(fresh);
  // By what they stand for: a draft that reads differently now was not ticked as it reads.
  for (const box of boxes()) box.checked = ticked.includes(box.value);
  goTo(current());
  // What was refused is put right where it was typed.
  current()?.querySelector('[aria-invalid="true"]')?.focus();
}

const keys = document.querySelector(".queue-keys");
keys.hidden = false;
// A device without a pointer that hovers has no keyboard either, most of the time.
keys.open = matchMedia("(hover: hover)").matches;
goTo(current());
