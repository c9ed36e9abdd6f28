// The marks of results: the service checks evidence and arithmetic first, and only then are they marked.
const marks = new Map();
let asking = Promise.resolve();

/** Of signals that are filled or closed: the id, the status, and the item in the list. */
export function mark(signals, address) {
  asking = asking.then(async () => {
    const unknown = signals.filter((signal) => !marks.has(keyOf(signal)));
    if (unknown.length) await check(unknown, address);
    for (const signal of signals) show(signal.item, marks.get(keyOf(signal)));
  });
}

// The check of a fill does not cover the end.
const keyOf = ({ id, status }) => `${id} ${status}`;

async function check(signals, address) {
  try {
    const answer = await fetch(`${address}?ids=${signals.map(({ id }) => id)}`);
    const { marks: found } = await answer.json();
    for (const signal of signals) if (found[signal.id]) marks.set(keyOf(signal), found[signal.id]);
  } catch {
    // Nothing was checked, so nothing is marked; the link still leads to the proof.
  }
}

function show(item, found) {
  if (!found) return;
  const [name, label] = found;
  const link = item.querySelector("[data-part=page]");
  link.textContent = name === "verified_at_venue" ? `✓ ${label}` : label;
  if (name) link.classList.add(name);
  else withoutResult(item);
}

/** It was never filled, so it neither won nor lost. */
function withoutResult(item) {
  item.classList.remove("won", "lost");
  item.querySelector("[data-part=result]").replaceChildren();
}
