// The user's settings of the page, in this browser. If storage is switched off, nothing is remembered.
const named = (name) => `tickwire-${name}`;

export function kept(name) {
  try {
    return localStorage.getItem(named(name));
  } catch {
    return null;
  }
}

export function keep(name, value) {
  try {
    localStorage.setItem(named(name), value);
  } catch {} // As above.
}

/** A remembered object. Anything else, from another version or edited by hand, is ignored. */
export function keptObject(name) {
  try {
    return Object(JSON.parse(kept(name)));
  } catch {
    return {};
  }
}
