// The marks of results: the service checks evidence and arithmetic first, and only then are they marked.
const marks = new Map();
let asking = Promise.resolve();

/** Of closed signals by their id, each with its item in the list. */
export function mark(items, address) {
  asking = asking.then(async () => {
    const unknown = [...items.keys()].filter((id) => !marks.has(id));
    if (unknown.length) await check(unknown, address);
    for (const [id, item] of items) show(item, marks.get(id));
  });
}

async function check(ids, address) {
  try {
    const answer = await fetch(`${address}?ids=${ids}`);
    for (const [id, found] of Object.entries((await answer.json()).marks)) marks.set(id, found);
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
