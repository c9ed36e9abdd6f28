// The mark of results that hold: the service checks evidence and arithmetic first, and only then are they marked.
const states = new Map();
let asking = Promise.resolve();

/** Of closed signals by their id, each with its item in the list. */
export function mark(items, address) {
  asking = asking.then(async () => {
    const unknown = [...items.keys()].filter((id) => !states.has(id));
    if (unknown.length) await check(unknown, address);
    for (const [id, item] of items) show(item.querySelector("[data-part=page]"), states.get(id));
  });
}

async function check(ids, address) {
  try {
    const answer = await fetch(`${address}?ids=${ids}`);
    for (const [id, state] of Object.entries((await answer.json()).states)) states.set(id, state);
  } catch {
    // Nothing was checked, so nothing is marked; the link still leads to the proof.
  }
}

function show(link, state) {
  if (!state) return;
  link.textContent = state === "verified" ? "✓ Verified" : "Not verified";
  link.classList.add(state);
}
